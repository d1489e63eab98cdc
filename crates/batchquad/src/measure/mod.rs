//! Measures to integrate against.

pub mod uniform_box;

pub use uniform_box::UniformBox;
