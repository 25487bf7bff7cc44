//! Whole experiment files: the trials that they plan, and the mistakes that they may have.

use super::*;

const LEAST: &str =
    "name = \"least\"\n[[contenders]]\nname = \"a\"\nurl = \"http://h/\"\n[load]\ntime = \"1s\"\n";

fn trials(text: &str) -> Vec<String> {
    let experiment = Experiment::parse(text).unwrap();
    let described = |trial: &Trial| {
        let mut point: Vec<String> =
            trial.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        point.extend(trial.open_loop.map(|one| format!("{}%", one.percent)));
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
fn the_outline_has_the_trials_of_each_contender_and_the_values_that_concern_it() {
    let text = r#"
name = "n"
[load]
time = "1s"
[sweep]
engine = ["epoll", "uring"]
users = [1, 8]
pick = ["each"]
[open_loop]
percent = [50]
[order]
repetitions = 2
[[contenders]]
name = "ours"
command = ["serve", "{engine}", "{port}"]
url = "http://h:{port}/"
[[contenders]]
name = "peer"
url = "http://h/"
"#;
    let experiment = Experiment::parse(text).unwrap();
    let table = "| contender | trials | sweep                                            |\n\
                 | --------- | -----: | ------------------------------------------------ |\n\
                 | ours      |     12 | engine = epoll, uring; users = 1, 8; pick = each |\n\
                 | peer      |      6 | users = 1, 8; pick = each                        |\n";
    assert_eq!(experiment.outline_table(), table);
    let trials: usize = experiment.outline().iter().map(|one| one.trials).sum();
    assert_eq!(trials, experiment.trials().len());
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
fn open_loops_follow_the_closed_loops_of_their_case_with_the_most_users() {
    let text = r#"
name = "n"
[load]
time = "1s"
think = "5ms"
[sweep]
engine = [1, 2]
users = [1, 8, 4]
[open_loop]
percent = [50, 90]
[order]
repetitions = 2
[[contenders]]
name = "a"
command = ["serve", "{engine}", "{port}"]
url = "http://h:{port}/"
[[contenders]]
name = "peer"
url = "http://h/"
"#;
    let planned = trials(text);
    // The case of the peer does not depend on the engine.
    assert_eq!(planned.len(), (6 + 3) * 2 + (2 + 1) * 2 * 2);
    let block =
        ["a engine=1,users=8,50% 1", "peer users=8,50% 1", "peer users=8,50% 2", "a engine=1,users=8,50% 2"];
    assert_eq!(
        (planned[11].as_str(), &planned[12..16]),
        ("a engine=1,users=4 2", &block.map(str::to_owned)[..])
    );
    let last = ["a engine=2,users=8,50% 2", "a engine=2,users=8,90% 1", "a engine=2,users=8,90% 2"];
    assert_eq!(planned[planned.len() - 3..], last);
    let experiment = Experiment::parse(text).unwrap();
    let profiled: Vec<String> =
        experiment.profiled().iter().map(|trial| format!("{:?} {}", trial.point, trial.contender)).collect();
    let expected = ["1", "2"].map(|engine| format!("{{\"engine\": {engine:?}, \"users\": \"8\"}} 0"));
    assert_eq!(profiled, expected, "the peer runs already");
    let settings = |open_loop| {
        let trial = Trial { open_loop, ..experiment.trials()[12].clone() };
        experiment.settings(&trial).unwrap().load.arguments()
    };
    let open = settings(Some(open_loop::OpenLoop { percent: 50, rate: Some(512.5) }));
    assert_eq!(open, ["--users", "8", "--duration", "1s", "--rate", "512.5"]);
    assert!(settings(None).contains(&"--think".to_owned()));
}

#[test]
fn all_points_follow_each_other_before_the_open_loops_of_a_changing_load() {
    let text = format!(
        "{LEAST}[sweep]\nusers = [1, 2]\n[order]\nrepetitions = 2\ninnermost = \"point\"\n\
         [open_loop]\npercent = [50, 70]\n"
    );
    let planned = trials(&text);
    assert_eq!(planned[..4], ["a users=1 1", "a users=2 1", "a users=1 2", "a users=2 2"]);
    assert_eq!(planned[4..], ["a users=2,50% 1", "a users=2,70% 1", "a users=2,50% 2", "a users=2,70% 2"]);
    // Without a sweep of users too, there is a maximum.
    assert_eq!(trials(&format!("{LEAST}[open_loop]\npercent = [50]\n")).len(), 6);
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
        ("[sweep]\nusers = [4, 1, 4]", "`sweep.users` has 4 twice"),
        ("[sweep]\ncolour = [1]", "nothing uses the variable `colour`"),
        ("[sweep]\nport = [1]", "sets {port} itself"),
        ("[sweep]\ntime = [\"1s\"]", "both set `time`"),
        ("[sweep]\nusers = [1]\n[[points]]\nusers = 2", "both have `users`"),
        ("[sweep]\nusers = [0]", "`users`"),
        ("[open_loop]\npercent = [50, 101]", "whole percent from 1 to 100"),
        ("[open_loop]\npercent = [0.5]", "percent"),
        ("[open_loop]\npercent = [50, 50]", "twice"),
        ("[open_loop]\npercents = [50]", "percents"),
        ("[sweep]\nrate = [5]\n[open_loop]\npercent = [50]", "leave `rate` out"),
        ("[conditions]\nmemory = \"{megabytes}\"", "{megabytes}"),
        ("[[files]]\nname = \"a\"\nsize = 1\n[[files]]\nname = \"b\"\nsize = 1", "select one"),
        ("[[files]]\nname = \"../a\"\nsize = 1", "plain folder name"),
        ("[[contenders]]\nname = \"a\"\nurl = \"http://h/\"", "two contenders"),
        ("[[contenders]]\nname = \"b\"\nurl = \"http://h/{file}\"", "add a [[files]] table"),
        ("[[contenders]]\nlike = \"001-vsftpd\"", "contender: variables = { server_cores = \"VALUE\" }"),
        ("[[contenders]]\nname = \"b\"\nurl = \"gopher://h/\"", "ftps://, ftpes:// or classic://"),
        ("[[contenders]]\nname = \"b\"\nurl = \"ftp://h/{}\"", "add a [[files]] table"),
        ("[[contenders]]\nname = \"b\"\nurl = \"http://h:x/\"", "HOST:PORT"),
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
fn a_mistake_of_types_and_keys_is_one_line_with_its_number_and_what_to_write() {
    for (text, expected) in [
        ("[order]\nrepetitions = \"x\"", "line 8: `repetitions` is \"x\": write a whole number"),
        (
            "[order]\ninnermost = \"users\"",
            "line 8: `innermost` is \"users\": write one of repetition, point",
        ),
        ("[order]\nrepetitons = 3", "line 8: there is no key \"repetitons\"; did you mean \"repetitions\"?"),
        ("[[files]]\nname = \"a\"", "line 7: the key `size` is missing"),
        ("users = [", "line 7: it is no TOML: "),
        (
            "[[contenders]]\nname = \"b\"\ncomand = [\"c\"]",
            "line 7: contender \"b\": there is no key \"comand\"; did you mean \"command\"?",
        ),
        (
            "[[contenders]]\nname = \"b\"\nurl = \"http://h/\"\nreference = 1",
            "line 7: contender \"b\": `reference` is 1: write true or false",
        ),
    ] {
        let refused = refusal(&format!("{LEAST}{text}"));
        assert!(refused.starts_with(expected) && !refused.contains('\n'), "{text}: {refused}");
    }
}

#[test]
fn every_cut_of_a_file_is_refused_or_read_without_a_panic() {
    let more = "[sweep]\nusers = [1, 2]\n[[files]]\nname = \"é\"\n[conditions]\ncache = \"cold\"\n";
    let text = format!("{LEAST}{more}");
    for (at, _) in text.char_indices() {
        let _ = Experiment::parse(&text[..at]);
    }
}

#[test]
fn a_load_tool_is_measured_at_the_points_of_its_own_variables_without_files_and_open_loops() {
    let text = r#"
name = "n"
[[files]]
name = "small"
size = "1kB"
count = 1
[[files]]
name = "large"
size = "1MB"
count = 1
[[contenders]]
name = "ours"
url = "http://h/{file}"
[[contenders]]
name = "tool"
url = "http://h/"
load_tool = { command = ["carry", "{streams}", "{users}"], bytes = "/bytes", seconds = "/seconds" }
[load]
time = "1s"
[sweep]
files = ["small", "large"]
streams = [1, 2]
[open_loop]
percent = [50]
[order]
repetitions = 1
"#;
    let planned = trials(text);
    let own: Vec<&String> = planned.iter().filter(|trial| trial.starts_with("tool")).collect();
    assert_eq!(own, ["tool streams=1 1", "tool streams=2 1"]);
    let experiment = Experiment::parse(text).unwrap();
    let trial = experiment.trials().into_iter().find(|trial| trial.contender == 1).unwrap();
    let settings = experiment.settings(&trial).unwrap();
    assert_eq!(settings.files, None);
    let values = experiment.values(&trial, &settings, Values::new()).unwrap();
    let tool = experiment.contenders[1].load_tool.as_ref().unwrap();
    assert_eq!(tool.words(&values).unwrap(), ["carry", "1", "1"]);
    assert!(refusal(&text.replace("{streams}", "{strems}")).contains("{strems}"));
}

#[test]
fn an_experiment_file_that_is_cut_anywhere_is_read_or_refused_with_a_reason() {
    let text = include_str!("../../../../lab/experiments/000-network.toml");
    let mut read = 0;
    for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        match Experiment::parse(&text[..cut]) {
            Ok(experiment) => read += usize::from(!experiment.trials().is_empty()),
            Err(error) => assert!(!format!("{error:#}").is_empty()),
        }
    }
    // The tables of the document, which are at the end, can be cut off.
    assert!(read > 0 && read < text.len() / 2, "{read}");
}
