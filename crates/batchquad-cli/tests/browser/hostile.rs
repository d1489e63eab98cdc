//! Names and messages that would be code if they were let.

use std::io::{BufRead, BufReader};

use batchquad::{
    Engine, Settings,
    journal::{Event, Header, Ledger, Store, Told, Topic},
    prior::{Distribution, Prior},
    types::{FailureKind, Outcome},
};
use serde_json::{Value, json};

use crate::{chromium::Browser, common::Place, pages::open_quietly};

const EVIL: &str = "</script><img src=x onerror=\"window.pwned=1\"><svg onload=window.pwned=1>'\"&\u{1b}[2J{{ 7*7 }}";

/// A store in which everything that can be text is hostile; the program would never make one with such names.
fn store(place: &Place) {
    let normal = Distribution::normal(0.0, 1.0).unwrap();
    let names = [EVIL.to_owned(), format!("b{EVIL}")];
    let prior = Prior::independent(names.iter().map(|name| (name.clone(), normal))).unwrap();
    let settings = Settings { max_evaluations: 40, ..Settings::default() };
    let Value::Object(map) = serde_json::to_value(&settings).unwrap() else { panic!() };
    let block = |name: &String| json!({"name": name, "prior": normal});
    let problem = json!({"parameters": names.iter().map(block).collect::<Vec<_>>()});
    let header = Header::new(names.to_vec(), 1, problem, map).unwrap();
    let mut store = Store::create(place.path("evil.batchquad"), &header).unwrap();
    let mut engine = Engine::from_ledger(prior, Ledger::new(header)).unwrap();
    let mut record = |engine: &mut Engine, event: Event| {
        store.append(&event).unwrap();
        engine.apply(&event).unwrap();
    };
    record(&mut engine, Event::Note { text: format!("likelihood: {}", json!([EVIL, "--flag"])) });
    record(&mut engine, Event::Note { text: EVIL.into() });
    let labels = json!({ EVIL: format!("$\\alpha${EVIL}"), "nobody": EVIL });
    record(&mut engine, Event::Remark { topic: Topic::Labels, value: labels });
    let how =
        json!({ "command": [EVIL, "--flag"], EVIL: EVIL, "timeout": null, "env": { EVIL: EVIL }, "workers": EVIL });
    record(&mut engine, Event::Remark { topic: Topic::Likelihood, value: how });
    while engine.ledger().entries().len() < 40 {
        let asked = engine.ask(engine.next_batch()).unwrap();
        record(&mut engine, Event::Asked(asked.clone()));
        for job in asked.jobs {
            let outcome = if job.id.0 % 7 == 3 {
                Outcome::Failed { kind: FailureKind::Exit, message: EVIL.into() }
            } else {
                Outcome::Value(-job.theta.iter().map(|t| (t - 0.5).powi(2)).sum::<f64>())
            };
            let told = Told { worker: Some(EVIL.into()), seconds: 0.01, ..Told::new(job.id, outcome) };
            record(&mut engine, Event::Told(told));
        }
    }
}

#[test]
fn hostile_names_and_messages_are_inert() {
    let place = Place::bump("");
    store(&place);
    // In the terminal no escape sequence survives.
    for args in
        [&["watch", "evil.batchquad", "--once"][..], &["status", "evil.batchquad"], &["result", "evil.batchquad"]]
    {
        let shown = place.run(args, 0).stdout;
        assert!(!shown.contains('\u{1b}') && shown.contains("onerror"), "{shown:?}");
    }
    place.run(&["report", "evil.batchquad"], 0);
    let Some(mut browser) = Browser::start() else { return };
    browser.width(1100);
    open_quietly(&mut browser, &place.path("evil.html"));
    assert_eq!(browser.evaluate("window.pwned === undefined"), true);
    assert_eq!(browser.evaluate("document.querySelectorAll('script').length"), 1);
    assert_eq!(
        browser.evaluate("document.querySelectorAll('img, iframe, object, embed, svg[onload], [onerror]').length"),
        0
    );
    let text = browser.evaluate("document.body.innerText");
    let text = text.as_str().unwrap();
    assert!(text.contains("</script><img src=x") && text.contains("{{ 7*7 }}"), "shown as it is");
    assert_eq!(browser.evaluate("document.querySelectorAll('table.failures tbody tr').length"), 6);
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth - window.innerWidth"), 0);
    // And if something had slipped through, the policy would have stopped it: a script in the page does not run.
    let slip = "const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s);
                const d = document.createElement('div'); d.innerHTML = '<img src=\"x\" onerror=\"window.pwned = 1\">'; document.body.append(d);
                new Promise(done => setTimeout(() => done([window.pwned === undefined, window.violations.length > 0]), 300))";
    assert_eq!(browser.evaluate(slip), json!([true, true]));
    browser.picture("hostile");
    // The page that follows the run is as inert, also when its content is put in anew.
    let mut server = place.spawn(&["watch", "evil.batchquad", "--html"]);
    let mut address = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
    browser.open_url(address.trim());
    let again = "document.getElementById('live').dataset.seen = '';
                 new Promise(done => setTimeout(() => done([window.pwned === undefined, document.querySelectorAll('img').length]), 3000))";
    assert_eq!(browser.evaluate(again), json!([true, 0]));
    assert!(browser.evaluate("document.body.innerText").as_str().unwrap().contains("</script><img src=x"));
    server.kill().unwrap();
    server.wait().unwrap();
}
