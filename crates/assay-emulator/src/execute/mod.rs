//! Runs lowered programs.

mod access;
pub(crate) mod address;
mod asynchronous;
mod atomic;
mod barrier;
pub(crate) mod block;
pub(crate) mod bulk;
mod cluster;
mod collective;
mod control;
mod dispatch;
pub(crate) mod effect;
pub(crate) mod engine;
mod fast;
pub(crate) mod frame;
pub(crate) mod matrix;
pub(crate) mod mbarrier;
mod print;
mod proxy;
mod remote;
mod special;
mod stack;
mod tensor_box;
pub(crate) mod tensor_map;
pub(crate) mod warp;
pub(crate) mod wgmma;
