//! Write the declarations and the operators with tools/bindings, which reads plait's C headers and
//! ops.json. `PYTHON` names a Python in which plait is installed; the default is `python3`.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let generator = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("../../tools/bindings");
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let done = Command::new(&python).arg(&generator).arg("rust").arg(env("OUT_DIR")).status();
    match done {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{python} {} rust: {status}", generator.display()),
        Err(error) => panic!("{python} cannot be run ({error}); set PYTHON"),
    }
    println!("cargo:rerun-if-changed={}", generator.display());
    println!("cargo:rerun-if-env-changed=PYTHON");
}

fn env(name: &str) -> String {
    std::env::var(name).expect("cargo sets it")
}
