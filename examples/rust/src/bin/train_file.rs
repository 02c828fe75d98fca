//! Train the step that examples/languages.py exported, without Python in the process.
//!
//!     PLAIT_LIBRARIES=... cargo run --release --bin train_file FOLDER

use plait::{Graph, Settings};
use plait_examples::{folder, report, Digits, Result, ROWS};

fn main() -> Result<()> {
    let folder = folder()?;
    let digits = Digits::read(&folder, 100 * ROWS)?;
    let mut step = Graph::open(folder.join("step.safetensors"), &Settings::default())?;
    let mut losses = Vec::new();
    for (images, classes) in digits.batches() {
        step.set_input("x", images)?;
        step.set_input("y", classes)?;
        step.execute()?;
        losses.push(step.output::<f32>("output")?[0]);
    }
    report(&losses);
    step.save(folder.join("trained.safetensors"))?;
    Ok(())
}
