//! The example's classifier, held to its promise.

#[path = "../examples/sensors/main.rs"]
#[allow(dead_code, reason = "the example's own entry is not called")]
mod sensors;

use sensors::Classifier;
use sensors::signal::{CLASSES, SETTLE, Signal};

#[test]
fn movements_are_told_apart_soon_after_they_begin() {
    let mut classifier = Classifier::new(include_bytes!("../examples/sensors/model.minrnn")).unwrap();
    let mut signal = Signal::new(99);
    let (mut right, mut asked) = (0, 0);
    for class in CLASSES.iter().cycle().step_by(3).take(40) {
        signal.begin(class);
        for i in 0..60 {
            let (found, share) = classifier.sample(signal.value()).unwrap();
            assert!((0.25..=1.0).contains(&share), "the likeliest of four has {share}");
            if i >= SETTLE {
                asked += 1;
                right += usize::from(found == class.name);
            }
        }
    }
    assert!(right * 100 >= asked * 97, "{right} of {asked}");
}
