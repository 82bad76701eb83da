//! One test body, run on the emulator and on a GPU.

/// Makes two tests of each function. The file that uses it has `hardware`'s `alone` and `gpu`.
macro_rules! conformance {
    ($($name:ident)*) => {
        mod emulator {
            $(#[test]
            fn $name() {
                let mut device = super::open("emulator").expect("the emulator opens");
                super::$name(&mut *device);
            })*
        }
        mod cuda_gpu {
            $(#[test]
            fn $name() {
                let test = concat!("cuda_gpu::", stringify!($name));
                if super::gpu(test).is_none() {
                    return;
                }
                super::alone(test, || {
                    let mut device = super::gpu(test).expect("the GPU opens again");
                    super::$name(&mut *device);
                });
            })*
        }
    };
}
