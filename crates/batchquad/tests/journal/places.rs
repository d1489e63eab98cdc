//! Where a store may be, and who may read it.

use crate::common::*;
use batchquad::Error;
use batchquad::journal::{Event, Header, Store};
use serde_json::json;
use std::path::Path;

fn reason(result: Result<impl Sized, Error>) -> String {
    match result {
        Err(Error::NotAStore { reason, .. }) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn what_is_no_store_is_refused_in_words() {
    let (scratch, dir) = scratch();
    assert!(reason(Store::open(&dir)).contains("nothing at this path"));
    assert!(reason(Store::read(&dir)).contains("nothing at this path"));
    assert!(!dir.exists(), "looking creates nothing");

    let file = scratch.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    for result in [Store::open(&file).map(|_| ()), Store::read(&file).map(|_| ())] {
        assert!(reason(result).contains("it is a file"));
    }
    assert!(reason(Store::create(&file, &header())).contains("it is a file"));
    assert!(reason(Store::open(file.join("store"))).contains("part of the path is a file"));
    assert!(Store::create(file.join("store"), &header()).is_err());
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");

    assert!(reason(Store::open(scratch.path())).contains("no journal.jsonl"));
    assert!(
        reason(Store::create(scratch.path(), &header())).contains("\"file\""),
        "a directory with other things in it"
    );
    assert_eq!(scratch.path().read_dir().unwrap().count(), 1);
}

#[test]
fn a_store_is_not_created_over_another() {
    let (_scratch, dir) = scratch();
    write_store(&dir);
    let before = bytes_of(&dir);
    assert!(matches!(Store::create(&dir, &header()), Err(Error::StoreExists { .. })));
    assert_eq!(bytes_of(&dir), before);
}

#[test]
fn missing_parents_are_created_and_an_empty_directory_will_do() {
    let (scratch, dir) = scratch();
    drop(Store::create(dir.join("a/b/c"), &header()).unwrap());
    let empty = scratch.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    drop(Store::create(&empty, &header()).unwrap());
    assert!(Store::exists(dir.join("a/b/c")) && Store::exists(&empty));
}

#[cfg(unix)]
#[test]
fn a_link_to_a_store_is_followed_and_a_link_to_nothing_refused() {
    let (scratch, dir) = scratch();
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).unwrap();
    assert!(reason(Store::open(&link)).contains("link to nothing"));
    assert!(reason(Store::create(&link, &header())).contains("link to nothing"));
    write_store(&dir);
    let (mut store, replay) = Store::open(&link).unwrap();
    assert_eq!(only(&replay.records), events());
    assert!(matches!(Store::open(&dir), Err(Error::StoreLocked { .. })), "one lock, whichever way one comes");
    store.append(&Event::Note { text: "through the link".into() }).unwrap();
    drop(store);
    assert_eq!(Store::read(&dir).unwrap().records.len(), events().len() + 1);
    assert!(link.is_symlink());
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_look() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    let (_scratch, dir) = scratch();
    write_store(&dir);
    let torn = [bytes_of(&dir), b"{".to_vec()].concat();
    std::fs::write(dir.join("journal.jsonl"), torn).unwrap();
    drop(Store::open(&dir).unwrap());
    assert_eq!(mode(&dir), 0o700);
    let mut names = Vec::new();
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
        names.push(path.file_name().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, ["journal.jsonl", "journal.torn-1", "lock"]);

    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(batchquad::journal::inspect(&dir).unwrap().exposed, [dir]);
}

#[test]
fn a_second_handle_in_the_same_process_is_refused_but_may_read() {
    let (_scratch, dir) = scratch();
    write_store(&dir);
    let (store, _) = Store::open(&dir).unwrap();
    match Store::open(&dir) {
        Err(Error::StoreLocked { pid, host, .. }) => {
            assert_eq!(pid, Some(std::process::id()));
            assert!(!host.unwrap().is_empty());
        }
        other => panic!("{other:?}"),
    }
    std::fs::remove_file(dir.join("lock")).unwrap();
    let second = Store::open(&dir);
    assert!(matches!(second, Err(Error::StoreLocked { .. })), "deleting the lock file lets nobody in");
    assert_eq!(Store::read(&dir).unwrap().records.len(), events().len());
    drop(store);
    drop(Store::open(&dir).unwrap());
    assert_eq!(std::fs::read(dir.join("lock")).unwrap(), b"", "a writer that ended in good order leaves no name");
}

#[test]
fn a_changed_problem_is_refused_with_the_difference() {
    let store = header();
    let with = |names: &[&str], seed, problem| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Header::new(names, seed, problem, serde_json::Map::new()).unwrap()
    };
    let names: Vec<&str> = store.names().iter().map(String::as_str).collect();
    let same = with(&names, u64::MAX, store.problem().clone());
    store.require_same(&same).unwrap(); // other settings

    let spelled = json!({"prior": [{"normal": {"mean": 0.0, "sd": 1.5}}, {"uniform": {"low": -1.0, "high": 1}}]});
    store.require_same(&with(&names, u64::MAX, spelled)).unwrap();

    let wider = json!({"prior": [{"normal": {"mean": 0, "sd": 2.0}}, {"uniform": {"low": -1, "high": 1}}]});
    let family = json!({"prior": [{"normal": {"mean": 0, "sd": 1.5}}, {"beta": {"a": 1, "b": 1}}]});
    let fewer = json!({"prior": [{"normal": {"mean": 0, "sd": 1.5}}]});
    let renamed = ["x", names[1]];
    let reversed = [names[1], names[0]];
    let three = [names[0], names[1], "z"];
    let problem = store.problem().clone();
    for (given, difference) in [
        (with(&names, u64::MAX, wider), "problem.prior[0].normal.sd is 2.0, the store has 1.5"),
        (with(&names, u64::MAX, family), "problem.prior[1].beta is {\"a\":1,\"b\":1}, the store has null"),
        (with(&names, u64::MAX, fewer), "problem.prior is [{"),
        (with(&names, 1, problem.clone()), "seed is 1, the store has 18446744073709551615"),
        (with(&renamed, u64::MAX, problem.clone()), "names[0] is \"x\", the store has \"x; touch pwned\""),
        (with(&reversed, u64::MAX, problem.clone()), "names[1] is \"x; touch pwned\""),
        (with(&three, u64::MAX, problem), "names is ["),
    ] {
        let error = store.require_same(&given).unwrap_err();
        assert!(error.to_string().contains(difference), "{error}");
    }
}

#[test]
fn headers_without_names_or_with_equal_ones_are_refused() {
    let new =
        |names: &[&str]| Header::new(names.iter().map(|n| (*n).into()).collect(), 1, json!({}), serde_json::Map::new());
    assert!(matches!(new(&[]), Err(Error::Length { .. })));
    assert!(matches!(new(&["a", "b", "a"]), Err(Error::Invalid { .. })));
}

#[test]
fn what_json_cannot_hold_is_refused_before_it_is_written() {
    let (_scratch, dir) = scratch();
    let mut store = Store::create(&dir, &header()).unwrap();
    let before = bytes_of(&dir);
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let deep = Event::Settings { changes: [("deep".to_owned(), deep)].into_iter().collect() };
    let point = asked(vec![job(0, [0.0, 0.0]), job(1, [0.0, f64::NAN])]);
    let error = store.append(&point).unwrap_err();
    assert!(matches!(error, Error::NonFinitePoint { index: 1, coordinate: 1, .. }), "{error}");
    for event in [value(0, f64::NAN), value(0, f64::INFINITY), deep] {
        let error = store.append(&event).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }) && error.is_recoverable(), "{error}");
    }
    assert_eq!(bytes_of(&dir), before);
    store.append(&value(0, 1.0)).unwrap();
}

#[test]
fn of_many_who_create_the_same_store_one_does() {
    for _ in 0..20 {
        let (_scratch, dir) = scratch();
        let made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| Store::create(&dir, &header()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(made.iter().filter(|result| result.is_ok()).count(), 1, "{made:?}");
        for error in made.into_iter().filter_map(Result::err) {
            assert!(matches!(error, Error::StoreLocked { .. } | Error::StoreExists { .. }), "{error}");
        }
    }
}
