//! What `minrnn reproduce` can be asked for.

use minrnn::train::duration;
use minrnn::words::counted;
use minrnn_reproduce::{Job, Scale, Target, all, plan};

/// Every target with the number of its runs and the time they take at each scale.
///
/// # Errors
/// When a built-in target is malformed.
pub fn list() -> anyhow::Result<String> {
    let targets = all()?;
    let width = targets.iter().map(|target| target.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for target in &targets {
        text += &format!("{:width$}  {}\n", target.name, target.title);
        let scales: Vec<String> = Scale::ALL.iter().map(|&scale| effort(target, scale)).collect::<anyhow::Result<_>>()?;
        text += &format!("{:width$}  {}\n", "", scales.join("; "));
    }
    Ok(text + "\nTimes are rough estimates for two cores. Make one with: minrnn reproduce NAME --scale smoke|cpu|paper\n")
}

/// `cpu: 18 runs, 2 h 6 min`.
fn effort(target: &Target, scale: Scale) -> anyhow::Result<String> {
    let effort = target.effort(scale);
    let (mut runs, mut others) = (0, 0);
    for cell in plan(target, scale)? {
        match cell.job {
            Job::Train(_) => runs += cell.seeds,
            Job::Bench(_) => runs += 1,
            Job::CountParameters(_) => others += 1,
            Job::Quote(_) => {}
        }
    }
    let time = effort.minutes.map_or_else(|| "measured before it starts".to_owned(), |minutes| duration(60.0 * minutes * runs as f64));
    Ok(match (runs, others) {
        (0, 0) => format!("{}: quoted only", scale.name()),
        (0, _) => format!("{}: at once", scale.name()),
        _ => format!("{}: {}, {time}", scale.name(), counted(runs, "run")),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_target_is_listed_with_its_time() {
        let text = super::list().unwrap();
        assert!(minrnn_reproduce::names().filter(|name| !["all", "shakespeare"].contains(name)).all(|name| text.contains(name)));
        assert!(text.contains("smoke: ") && text.contains("paper: ") && text.contains("quoted only"), "{text}");
    }
}
