//! Runs lowered programs.

mod access;
pub(crate) mod address;
mod asynchronous;
mod atomic;
mod barrier;
pub(crate) mod block;
mod collective;
mod control;
mod dispatch;
pub(crate) mod effect;
pub(crate) mod engine;
mod fast;
pub(crate) mod frame;
pub(crate) mod matrix;
mod mbarrier;
mod print;
mod special;
mod stack;
pub(crate) mod warp;
pub(crate) mod wgmma;
