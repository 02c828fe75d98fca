//! Dtypes, devices, and the types of Rust whose values tensors hold.

use std::fmt;

use crate::abi::{self, DLDataType, DLDevice};
use crate::error::{Error, Kind, Result};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    Bool,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    Bfloat16,
    Float32,
    Float64,
    Complex64,
    Complex128,
}

const ALL: [(DType, u32, u8, &str); 15] = [
    (DType::Bool, abi::kDLBool, 8, "bool"),
    (DType::UInt8, abi::kDLUInt, 8, "uint8"),
    (DType::UInt16, abi::kDLUInt, 16, "uint16"),
    (DType::UInt32, abi::kDLUInt, 32, "uint32"),
    (DType::UInt64, abi::kDLUInt, 64, "uint64"),
    (DType::Int8, abi::kDLInt, 8, "int8"),
    (DType::Int16, abi::kDLInt, 16, "int16"),
    (DType::Int32, abi::kDLInt, 32, "int32"),
    (DType::Int64, abi::kDLInt, 64, "int64"),
    (DType::Float16, abi::kDLFloat, 16, "float16"),
    (DType::Bfloat16, abi::kDLBfloat, 16, "bfloat16"),
    (DType::Float32, abi::kDLFloat, 32, "float32"),
    (DType::Float64, abi::kDLFloat, 64, "float64"),
    (DType::Complex64, abi::kDLComplex, 64, "complex64"),
    (DType::Complex128, abi::kDLComplex, 128, "complex128"),
];

impl DType {
    fn row(self) -> &'static (DType, u32, u8, &'static str) {
        &ALL[self as usize]
    }
    /// The name that Python and saved graphs use, such as "float32".
    pub fn name(self) -> &'static str {
        self.row().3
    }
    /// The number of bytes of an element.
    pub fn item_size(self) -> usize {
        usize::from(self.row().2) / 8
    }
    pub(crate) fn raw(self) -> DLDataType {
        DLDataType { code: self.row().1 as u8, bits: self.row().2, lanes: 1 }
    }
    pub(crate) fn of(raw: DLDataType) -> Result<DType> {
        let row = ALL.iter().find(|row| row.1 as u8 == raw.code && row.2 == raw.bits);
        let text = format!("a dtype without a name in Rust: code {}, {} bits", raw.code, raw.bits);
        row.map(|row| row.0).ok_or_else(|| Error::new(Kind::DType, text))
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a tensor's elements are. A meta tensor has a shape and no elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    Cpu,
    Meta,
    /// Another one, by DLPack's number of its type and its index.
    Other(u32, i32),
}

impl Device {
    pub(crate) fn raw(self) -> DLDevice {
        let (device_type, device_id) = match self {
            Device::Cpu => (abi::kDLCPU, 0),
            Device::Meta => (0, 0),
            Device::Other(device_type, index) => (device_type, index),
        };
        DLDevice { device_type, device_id }
    }
    pub(crate) fn of(raw: DLDevice) -> Device {
        match raw.device_type {
            abi::kDLCPU => Device::Cpu,
            0 => Device::Meta,
            other => Device::Other(other, raw.device_id),
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type of Rust that is the type of a tensor's elements.
///
/// Halves have none: convert them by `ops::cast(&x, DType::Float32)`.
pub trait Element: Copy + sealed::Sealed + 'static {
    const DTYPE: DType;
}

/// Copy an element. Any byte but 0 is a true bool, whose only bytes in Rust are 0 and 1.
///
/// # Safety
/// `from` has an element of `T::DTYPE`, perhaps not aligned.
pub(crate) unsafe fn read<T: Element>(from: *const u8) -> T {
    if T::DTYPE == DType::Bool {
        let byte = u8::from(unsafe { *from } != 0);
        return unsafe { std::mem::transmute_copy::<u8, T>(&byte) };
    }
    unsafe { from.cast::<T>().read_unaligned() }
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),*) => {
        $(impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        })*
    };
}

// A pair is a complex number: real and imaginary part.
elements!(
    bool => Bool, u8 => UInt8, u16 => UInt16, u32 => UInt32, u64 => UInt64,
    i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    f32 => Float32, f64 => Float64, [f32; 2] => Complex64, [f64; 2] => Complex128
);
