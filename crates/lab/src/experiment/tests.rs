//! Whole experiment files: the trials that they plan, and the mistakes that they may have.

use super::*;

const LEAST: &str =
    "name = \"least\"\n[[contenders]]\nname = \"a\"\nurl = \"http://h/\"\n[load]\ntime = \"1s\"\n";

fn trials(text: &str) -> Vec<String> {
    let experiment = Experiment::parse(text).unwrap();
    let described = |trial: &Trial| {
        let point: Vec<String> = trial.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {} {}", experiment.contenders[trial.contender].name, point.join(","), trial.repetition)
    };
    experiment.trials().iter().map(described).collect()
}

fn refusal(text: &str) -> String {
    format!("{:#}", Experiment::parse(text).unwrap_err())
}

#[test]
fn the_least_experiment_has_three_trials() {
    assert_eq!(trials(LEAST), ["a  1", "a  2", "a  3"]);
}

#[test]
fn contenders_alternate_and_repetitions_follow_each_other() {
    let text = r#"
name = "n"
[load]
time = "1s"
[sweep]
users = [1, 8]
[order]
repetitions = 2
[[contenders]]
name = "a"
url = "http://h/"
[[contenders]]
name = "b"
url = "http://h/"
"#;
    let planned = trials(text);
    assert_eq!(planned[..4], ["a users=1 1", "b users=1 1", "b users=1 2", "a users=1 2"]);
    assert_eq!(planned.len(), 8);
    assert_eq!(planned[4], "a users=8 1");
}

#[test]
fn a_variable_concerns_only_contenders_that_use_it() {
    let text = r#"
name = "n"
[load]
time = "1s"
[sweep]
engine = ["epoll", "uring"]
users = [1]
[order]
repetitions = 1
[[contenders]]
name = "ours"
command = ["serve", "{engine}", "{port}"]
url = "http://h:{port}/"
[[contenders]]
name = "peer"
url = "http://h/"
"#;
    assert_eq!(
        trials(text),
        ["ours engine=epoll,users=1 1", "peer users=1 1", "ours engine=uring,users=1 1"]
    );
}

#[test]
fn listed_points_are_measured_in_their_order() {
    let text = r#"
name = "n"
[load]
time = "1s"
[order]
repetitions = 2
innermost = "point"
[[points]]
users = 6
pick = "same"
[[points]]
users = 6
pick = "each"
[[points]]
users = 1
pick = "same"
[[contenders]]
name = "a"
url = "http://h/"
"#;
    let planned = trials(text);
    assert_eq!(
        planned[..4],
        ["a pick=same,users=6 1", "a pick=each,users=6 1", "a pick=same,users=1 1", "a pick=same,users=6 2"]
    );
}

#[test]
fn a_trial_has_the_settings_of_its_point() {
    let text = r#"
name = "n"
[load]
requests_each = 2000
[sweep]
users = [4]
files = ["10K"]
megabytes = [8]
[[files]]
name = "1K"
size = "1KiB"
[[files]]
name = "10K"
size = "10KiB"
per_user = 2000
budget = "{megabytes}MB"
[conditions]
cache = "cold"
memory = "{megabytes}MiB"
[[contenders]]
name = "a"
url = "http://{host}:80/{file}"
"#;
    let experiment = Experiment::parse(text).unwrap();
    let trial = &experiment.trials()[0];
    let settings = experiment.settings(trial).unwrap();
    let files = settings.files.clone().unwrap();
    assert_eq!((files.folder.as_str(), files.count, files.planned), ("10K", 781, 8000));
    assert_eq!(settings.load.requests().unwrap(), Some(8000));
    assert_eq!(settings.conditions.memory, Some(8 << 20));
    let values = experiment.values(trial, &settings, Values::new()).unwrap();
    assert_eq!(fill(&experiment.contenders[0].url, &values).unwrap(), "http://127.0.0.1:80/10K/f{}");
}

#[test]
fn a_mistake_is_refused_with_what_to_write() {
    for (text, why) in [
        ("name = \"a b\"", "names a folder"),
        ("colour = 1", "colour"),
        ("[order]\nrepetition = 1", "repetition"),
        ("[sweep]\nusers = 3", "a list of values"),
        ("[sweep]\nusers = []", "is empty"),
        ("[sweep]\ncolour = [1]", "nothing uses the variable `colour`"),
        ("[sweep]\nport = [1]", "sets {port} itself"),
        ("[sweep]\ntime = [\"1s\"]", "both set `time`"),
        ("[sweep]\nusers = [1]\n[[points]]\nusers = 2", "both have `users`"),
        ("[sweep]\nusers = [0]", "`users`"),
        ("[conditions]\nmemory = \"{megabytes}\"", "{megabytes}"),
        ("[[files]]\nname = \"a\"\nsize = 1\n[[files]]\nname = \"b\"\nsize = 1", "select one"),
        ("[[files]]\nname = \"../a\"\nsize = 1", "plain folder name"),
        ("[[contenders]]\nname = \"a\"\nurl = \"http://h/\"", "two contenders"),
        ("[[contenders]]\nname = \"b\"\nurl = \"http://h/{file}\"", "there is no variable {file}"),
    ] {
        let text = if text.starts_with('[') {
            format!("{LEAST}{text}")
        } else {
            format!(
                "{text}\n{}",
                LEAST.replace(
                    "name = \"least\"\n",
                    if text.starts_with("name") { "" } else { "name = \"n\"\n" }
                )
            )
        };
        let refused = refusal(&text);
        assert!(refused.contains(why), "{text}\n{refused}");
    }
    assert!(refusal("name = \"n\"\ncontenders = []").contains("write [[contenders]]"));
    assert!(refusal("name =").contains("line 1"), "{}", refusal("name ="));
}

#[test]
fn every_cut_of_a_file_is_refused_or_read_without_a_panic() {
    let more = "[sweep]\nusers = [1, 2]\n[[files]]\nname = \"é\"\n[conditions]\ncache = \"cold\"\n";
    let text = format!("{LEAST}{more}");
    for (at, _) in text.char_indices() {
        let _ = Experiment::parse(&text[..at]);
    }
}
