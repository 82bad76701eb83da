//! The names a device gives to what it holds. Numbers come from one counter for the whole
//! process and are never used twice, so a handle that was freed, or that belongs to another
//! device, is always recognised as unknown.

use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(u64);

        impl $name {
            /// A handle that no device has given out before. For implementations of
            /// [`Device`](crate::Device).
            #[expect(clippy::new_without_default, reason = "two defaults would differ")]
            pub fn new() -> Self {
                Self(next())
            }

            /// The number, for messages.
            pub fn number(self) -> u64 {
                self.0
            }
        }
    )*};
}

handles! {
    /// A loaded module: an image of one or more kernels.
    ModuleId;
    /// A buffer in device memory, with its guards.
    BufferId;
    /// A buffer in the host's memory that a device copies from and to.
    HostBufferId;
    /// A queue of work that runs in order.
    StreamId;
    /// A point in a stream whose time can be read.
    EventId;
    /// Captured launches that run again as one.
    GraphId;
}

impl StreamId {
    /// The stream that every device has from the start.
    pub const DEFAULT: StreamId = StreamId(0);
}
