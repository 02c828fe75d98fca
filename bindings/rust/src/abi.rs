//! What plait/abi.h and plait/dlpack.h declare; tools/bindings writes it.
#![allow(non_camel_case_types, non_upper_case_globals, dead_code, clippy::all)]

use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

use crate::error::Result;
use crate::library::Library;

include!(concat!(env!("OUT_DIR"), "/abi.rs"));
