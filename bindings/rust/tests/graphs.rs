//! Saved graphs. `PLAIT_STEP` names the file that examples/languages.py writes.

use plait::{Description, Graph, Kind, Part, Settings};

fn open() -> Graph {
    let path = std::env::var("PLAIT_STEP").expect("PLAIT_STEP names the file");
    Graph::open(path, &Settings::default()).unwrap()
}

#[test]
fn a_graph_describes_itself() {
    let mut step = open();
    let inputs = step.describe(Part::Input).unwrap();
    let x = Description { name: "x".into(), dtype: "float32".into(), shape: vec![100, 784] };
    assert_eq!(inputs[0], x);
    assert_eq!(step.names(Part::Output).unwrap(), ["output"]);
    assert_eq!(step.count(Part::Input), 2);
    assert!(step.memory() > 100 * 784 * 4);
    assert!(step.names(Part::Number).unwrap().contains(&"adam.0.lr".into()));
}

#[test]
fn a_step_changes_weights_and_is_saved() {
    let mut step = open();
    let names = step.names(Part::Weight).unwrap();
    step.set_input("x", &[0.5f32; 78400]).unwrap();
    step.set_input("y", &[3i64; 100]).unwrap();
    step.set_number("adam.0.lr", 0.01).unwrap();
    assert_eq!(step.number("adam.0.lr").unwrap(), 0.01);
    let shapes = step.describe(Part::Weight).unwrap();
    let float = |d: &&Description| d.dtype == "float32" && d.shape == [1, 10];
    let bias = shapes.iter().find(float).unwrap().name.clone();
    let before = step.weight::<f32>(&bias).unwrap();
    step.execute().unwrap();
    let first = step.output::<f32>("output").unwrap()[0];
    assert_ne!(before, step.weight::<f32>(&bias).unwrap());
    let path = std::env::temp_dir().join(format!("plait_rust_{}.safetensors", std::process::id()));
    step.save(&path).unwrap();
    let mut again = Graph::open(&path, &Settings::default()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(again.names(Part::Weight).unwrap(), names);
    assert_eq!(again.weight::<f32>(&bias).unwrap(), step.weight::<f32>(&bias).unwrap());
    again.set_weight(&bias, &before).unwrap();
    assert_eq!(again.weight::<f32>(&bias).unwrap(), before);
    step.execute().unwrap();
    assert!(step.output::<f32>("output").unwrap()[0] < first);
}

#[test]
fn bad_input_is_an_error() {
    let mut step = open();
    let error = step.execute().unwrap_err();
    assert_eq!(error.kind(), Kind::Value);
    assert!(error.message().contains('x'), "{error}");
    assert_eq!(step.set_input("x", &[0.0f64; 78400]).unwrap_err().kind(), Kind::DType);
    assert_eq!(step.set_input("x", &[0.0f32; 3]).unwrap_err().kind(), Kind::Shape);
    let error = step.set_input("z", &[0.0f32; 3]).unwrap_err();
    assert_eq!(error.message(), "there is no input z; there are: x, y");
    assert_eq!(step.output::<f32>("output").unwrap_err().kind(), Kind::Value);
    assert_eq!(step.number("x").unwrap_err().kind(), Kind::Index);
    assert!(step.save("/no/such/folder/file").is_err());
    let missing = Graph::open("/no/such/file", &Settings::default());
    assert!(missing.err().unwrap().message().contains("/no/such/file"));
    let damaged = std::env::temp_dir().join(format!("plait_rust_{}.bad", std::process::id()));
    std::fs::write(&damaged, [255u8; 64]).unwrap();
    assert!(Graph::open(&damaged, &Settings::default()).is_err());
    std::fs::remove_file(damaged).unwrap();
}

#[test]
fn a_graph_may_go_to_another_thread() {
    let mut step = open();
    let moved = std::thread::spawn(move || {
        step.set_input("x", &[0.5f32; 78400]).unwrap();
        step.set_input("y", &[3i64; 100]).unwrap();
        step.execute().unwrap();
        step.output::<f32>("output").unwrap()
    });
    assert!(moved.join().unwrap()[0].is_finite());
}

#[test]
fn graphs_and_operators_live_in_one_process() {
    let mut step = open();
    plait::load(None).unwrap(); // finds the libraries that the graph has loaded
    step.set_input("x", &[0.5f32; 78400]).unwrap();
    step.set_input("y", &[3i64; 100]).unwrap();
    step.execute().unwrap();
    let loss = step.output::<f32>("output").unwrap()[0];
    let twice = plait::Tensor::scalar(loss).unwrap().mul(2).unwrap();
    assert_eq!(twice.item::<f32>().unwrap(), 2.0 * loss);
}
