//! Before `load` everything is an error; it is a process of its own, as `load` counts once.

use plait::{ops, Kind, Tensor};

#[test]
fn nothing_works_before_load() {
    let error = Tensor::new(&[1.0f32], &[1]).unwrap_err();
    assert_eq!(error.kind(), Kind::Runtime);
    assert_eq!(error.message(), "plait is not loaded: call plait::load first");
    assert!(ops::ones(&[2]).is_err());
    let error = plait::load(Some("/no/such/folder")).unwrap_err();
    assert!(error.message().starts_with("libplait_abi.so is not there; looked in /no/such/folder"));
    assert_eq!(plait::load(Some("")).unwrap_err().kind(), Kind::Value);
    plait::load(None).unwrap();
    assert_eq!(ops::ones(&[2]).unwrap().to_vec::<f32>().unwrap(), [1.0, 1.0]);
}
