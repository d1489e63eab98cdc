//! Mistakes in problem files: exit code 2, the key's path, what was expected.

use crate::common::Place;

const GOOD: &str = r#"[[parameter]]
name = "x"
prior = { normal = { mean = 0, sd = 1 } }
[[parameter]]
name = "y"
prior = { uniform = { low = 0, high = 1 } }
[likelihood]
command = ["./likelihood"]
[run]
max_evaluations = 16
"#;

/// What is replaced, by what, and what the message must hold.
const MISTAKES: &[(&str, &str, &[&str])] = &[
    ("max_evaluations", "max_evals", &["run.max_evals", "unknown key", "did you mean `max_evaluations`?"]),
    ("sd = 1", "sd = -1", &["parameter[0].prior", "sd", "-1.0", "a finite number > 0"]),
    ("sd = 1", "sd = nan", &["parameter[0].prior", "sd", "NaN", "a finite number > 0"]),
    ("sd = 1", "sd = \"one\"", &["parameter[0].prior.normal.sd", "\"one\"", "expected a number"]),
    ("sd = 1", "stdev = 1", &["parameter[0].prior.normal.stdev", "expected one of mean, sd"]),
    ("low = 0, high = 1", "low = 2, high = 1", &["parameter[1].prior", "high", "1.0", "> 2.0, the value of low"]),
    ("normal =", "norml =", &["parameter[0].prior", "`norml`", "did you mean `normal`?"]),
    ("{ normal = { mean = 0, sd = 1 } }", "\"normal\"", &["parameter[0].prior is \"normal\"", "{ normal = {"]),
    ("\"y\"", "\"x\"", &["name of parameter 1 is \"x\"", "not used before"]),
    ("name = \"x\"\n", "", &["parameter[0]", "`name` is missing"]),
    ("\"x\"", "\"x; touch pwned\"", &["parameter[0].name", "x; touch pwned", "begins with a letter"]),
    ("\"x\"", "\"</script>\"", &["parameter[0].name", "begins with a letter"]),
    ("\"x\"", "\"\\u001b[31mred\"", &["parameter[0].name", "begins with a letter"]),
    ("16", "\"16\"", &["run.max_evaluations", "the text \"16\"", "a whole number"]),
    ("16", "0", &["run.max_evaluations is 0", "at least 1"]),
    ("16", "-16", &["run.max_evaluations", "-16", "a whole number >= 0"]),
    ("[\"./likelihood\"]", "\"python3 like.py\"", &["likelihood.command", "[\"python3\", \"like.py\"]"]),
    ("[\"./likelihood\"]", "[\"./nothing\"]", &["likelihood.command", "\"./nothing\"", "no file"]),
    (
        "[\"./likelihood\"]",
        "[\"./likelihood\", \"{X}\"]",
        &["likelihood.command is \"{X}\"", "one of {x}, {y}, {in}", "not {X}"],
    ),
    (
        "[\"./likelihood\"]",
        "[\"./likelihood\", \"{x:.3f}\"]",
        &["likelihood.command", "{x} instead of {x:.3f}", "full precision"],
    ),
    (
        "command = [\"./likelihood\"]",
        "mode = \"server\"\ncommand = [\"./likelihood\", \"{x}\"]",
        &["likelihood.command", "no names in braces", "server"],
    ),
    ("command = [\"./likelihood\"]\n", "", &["likelihood", "`command` is missing"]),
    ("command", "timeout = -3\ncommand", &["likelihood.timeout", "-3", "seconds >= 0"]),
    ("command", "on_failure = \"skip\"\ncommand", &["likelihood.on_failure", "`skip`", "exclude, as-zero, abort"]),
    ("command", "shel = true\ncommand", &["likelihood.shel", "did you mean `shell`?"]),
    ("command", "umbridge = { url = \"http://a\", model = \"m\" }\ncommand", &["both command and umbridge"]),
    (
        "command = [\"./likelihood\"]",
        "umbridge = { url = \"https://a\", model = \"m\" }",
        &["likelihood.umbridge.url is \"https://a\"", "http://host:port"],
    ),
    (
        "command = [\"./likelihood\"]",
        "umbridge = { url = 4242, model = \"m\" }",
        &["likelihood.umbridge.url", "expected an address"],
    ),
    (
        "command = [\"./likelihood\"]",
        "umbridge = { url = \"http://a\" }",
        &["likelihood.umbridge", "`model` is missing"],
    ),
    (
        "command = [\"./likelihood\"]",
        "mode = \"server\"\numbridge = { url = \"http://a\", model = \"m\" }",
        &["likelihood.mode", "unknown key", "umbridge, timeout, retries, max_output, on_failure"],
    ),
    ("[likelihood]", "[liklihood]", &["`liklihood`", "did you mean `likelihood`?"]),
    ("[run]", "[run]\nbatch_rule = \"local-penalization\"", &["run.batch_rule", "did you mean `local-penalisation`?"]),
    ("[run]", "[run]\ntarget_sd = -0.1", &["run.target_sd is -0.1", "> 0"]),
    ("[run]", "[run]\nknown_log_z = nan", &["run.known_log_z is NaN", "a finite number"]),
    ("[run]", "[run]\nknown_logz = -1", &["run.known_logz", "did you mean `known_log_z`?"]),
    ("[run]", "[run]\nstart = { x = 1 }", &["run.start is {\"x\": 1.0}", "every parameter", "y has none"]),
    ("[run]", "[run]\nstart = { x = 1, y = 1, z = 1 }", &["run.start is {", "values of x, y", "z is not a parameter"]),
    ("[run]", "[run]\nstart = { x = inf, y = 0.5 }", &["run.start.x is inf", "a finite number"]),
    ("[run]", "[run]\nstart = { x = \"1\", y = 0.5 }", &["start.x is \"1\"", "a number"]),
    ("[run]", "[run]\nstart = [{ x = 1, y = 0.5 }, { x = 1, y = 2 }]", &["start[1]", "\"y\" is 2", "(0.0, 1.0)"]),
    ("[run]", "[run]\nstart = [1, 0.5]", &["start is [1,0.5]", "a table"]),
    ("[run]", "[run]\nworkers = 0", &["run.workers is 0", "at least 1"]),
    ("[run]", "[run]\non_failure = \"abort\"", &["run.on_failure", "[likelihood]"]),
    ("[run]", "[run", &["line 9", "[run"]),
    ("max_evaluations = 16", "batch = 8\nbatch = 9", &["line 11", "duplicate key"]),
    (
        "name = \"x\"\nprior = { normal = { mean = 0, sd = 1 } }",
        "names = [\"a\", \"b\"]\nprior = { multivariate-normal = { mean = [0, 0], covariance = [[1, 2], [2, 1]] } }",
        &["parameter[0].prior.multivariate-normal", "positive definite"],
    ),
    (
        "name = \"x\"\nprior = { normal = { mean = 0, sd = 1 } }",
        "names = [\"a\"]\nprior = { multivariate-normal = { mean = [0, 0], covariance = [[1, 0], [0, 1]] } }",
        &["parameter[0].names has 1 names, expected 2"],
    ),
];

#[test]
fn every_mistake_is_named_with_its_remedy() {
    let place = Place::new("#!/bin/sh\necho 0\n", "", "");
    for (old, new, expected) in MISTAKES {
        assert!(GOOD.contains(old), "{old}");
        place.write("problem.toml", &GOOD.replacen(old, new, 1));
        let refused = place.run(&["run", "problem.toml", "-q"], 2);
        for part in *expected {
            assert!(refused.stderr.contains(part), "{new}: {part:?} is not in {}", refused.stderr);
        }
        assert!(refused.stderr.trim_end().lines().count() <= 2, "{}", refused.stderr);
        assert!(!refused.stderr.contains('\x1b') && refused.stdout.is_empty());
        assert!(!place.path("problem.batchquad").exists() && !place.path("pwned").exists());
    }
    place.write("problem.toml", "");
    assert!(place.run(&["run", "problem.toml"], 2).stderr.contains("[[parameter]]"));
    place.write("problem.toml", &GOOD.replace("[[parameter]]", "[parameter]"));
    assert!(place.run(&["run", "problem.toml"], 2).stderr.contains("[[parameter]] with two brackets"));
    assert!(place.run(&["run", "nothing.toml"], 2).stderr.contains("nothing.toml"));
    place.write("problem.toml", GOOD);
    place.run(&["run", "problem.toml", "-q"], 0);
}

#[test]
fn all_families_and_keys_of_the_documentation_are_accepted() {
    let place = Place::new("#!/bin/sh\necho 0\n", "", "");
    let priors = [
        "normal = { mean = 0, sd = 1 }",
        "log-normal = { mu = 0, sigma = 1 }",
        "uniform = { low = -1, high = 1.5 }",
        "log-uniform = { low = 1e-3, high = 10 }",
        "beta = { a = 2, b = 3 }",
        "gamma = { shape = 2, rate = 1 }",
        "inverse-gamma = { shape = 2, scale = 1 }",
        "exponential = { rate = 2 }",
        "half-normal = { scale = 1 }",
        "cauchy = { location = 0, scale = 1 }",
        "half-cauchy = { scale = 1 }",
        "student-t = { dof = 4, location = 0, scale = 1 }",
        "truncated-normal = { mean = 0, sd = 1, low = 0 }",
    ];
    let mut text = String::new();
    for (i, prior) in priors.iter().enumerate() {
        text.push_str(&format!("[[parameter]]\nname = \"p{i}\"\nprior = {{ {prior} }}\n"));
    }
    text.push_str(
        r#"
        [likelihood]
        command = ["echo '-1.5'"]
        shell = true
        mode = "per-call"
        timeout = 10
        retries = 1
        on_failure = "as-zero"
        working_dir = "."
        env = { A = "b" }
        inherit_env = ["PATH"]
        max_output = 1000
        grace = 1.5
        [run]
        batch = 4
        max_evaluations = 64
        max_batches = 9
        max_seconds = 100.0
        target_sd = 0.1
        stall = 0.01
        seed = 7
        workers = 2
        surrogate = "wsabi-m"
        kernel = "ard"
        batch_rule = "kriging-believer"
        acquisition = "uncertainty"
        starts_per_dim = 5
        penalisation = { slope = 0.5, power = 6 }
        initial_design = "sobol"
        initial_size = 20
        schedule = "async"
        "#,
    );
    place.write("problem.toml", &text);
    let checked = place.run(&["check", "problem.toml"], 0).stdout;
    assert!(checked.contains("log-likelihood -1.5"), "{checked}");
    place.run(&["new", "problem.toml", "--store", "store"], 0);
    assert_eq!(place.run(&["ask", "store", "-n", "3"], 0).json_lines().len(), 3);
}

#[test]
fn another_problem_does_not_resume_a_store() {
    let place = Place::bump("max_evaluations = 16\nseed = 1");
    place.run(&["run", "problem.toml", "-q"], 0);
    let good = std::fs::read_to_string(place.path("problem.toml")).unwrap();
    for (old, new, expected) in [
        ("sd = 1", "sd = 2", "problem.parameters[0].prior.normal.sd is 2.0, the store has 1.0"),
        ("\"y\"", "\"z\"", "names[1] is \"z\", the store has \"y\""),
        ("seed = 1", "seed = 2", "seed is 2, the store has 1"),
        (
            "[likelihood]",
            "[[parameter]]\nname = \"w\"\nprior = { normal = { mean = 0, sd = 1 } }\n[likelihood]",
            "names",
        ),
    ] {
        place.write("problem.toml", &good.replacen(old, new, 1));
        let refused = place.run(&["run", "problem.toml", "-q"], 2);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    // Whole numbers are numbers, another script may be the same likelihood, a larger budget is welcome.
    place.script("moved", crate::common::BUMP);
    let same = good.replace("sd = 1", "sd = 1.0").replace("./likelihood", "./moved").replace("= 16", "= 24");
    place.write("problem.toml", &same.replace("seed = 1", ""));
    let more = place.run(&["run", "problem.toml", "-q", "--json"], 0).json();
    assert_eq!((more["evaluations"].as_u64(), more["seed"].as_u64()), (Some(24), Some(1)));
    assert!(place.run(&["status", "problem.batchquad"], 0).stdout.contains("./moved"));

    place.run(&["new", "problem.toml"], 2);
    place.run(&["run", "problem.toml", "--store", "none", "--resume"], 2);
    place.run(&["run", "problem.toml", "--store", "problem.toml"], 2);
    place.run(&["ask", "problem.batchquad", "-n", "0"], 2);
    place.run(&["run", "problem.toml", "--target-sd", "nan", "-q"], 2);
}

#[test]
fn a_start_is_evaluated_first_and_belongs_to_the_run() {
    let place = Place::bump("max_evaluations = 24\nstart = { y = 0.25, x = 0.5 }");
    let checked = place.run(&["check", "problem.toml"], 0).stdout;
    assert!(checked.contains("9 points to begin with"), "{checked}");
    place.run(&["run", "problem.toml", "-q"], 0);
    let first = |store: &str| place.run(&["export", store], 0).stdout.lines().nth(1).unwrap().to_owned();
    assert!(first("problem.batchquad").starts_with("0,0,0.5,0.25,"), "{}", first("problem.batchquad"));
    let good = std::fs::read_to_string(place.path("problem.toml")).unwrap();
    place.write("problem.toml", &good.replace("x = 0.5", "x = 0.75"));
    let refused = place.run(&["run", "problem.toml", "-q"], 2).stderr;
    let expected = r#"start is [{"x":0.75,"y":0.25}], the store has [{"x":0.5,"y":0.25}]"#;
    assert!(refused.contains(expected), "{refused}");
    // Left open it is the store's, also where the budget is raised.
    place.write("problem.toml", &good.replace("start =", "# start =").replace("= 24", "= 28"));
    place.run(&["run", "problem.toml", "-q"], 0);
    // The problem file in the report makes the same run again.
    let page = place.run(&["report", "problem.batchquad", "-o", "-"], 0).stdout;
    assert!(page.contains("start = [{ x = 0.5, y = 0.25 }]"), "{page}");
}
