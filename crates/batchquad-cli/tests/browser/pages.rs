//! What a page shows, and that it works.

use std::fs;

use serde_json::{Value, json};

use crate::{
    chromium::Browser,
    common::{BUMP, Place},
};

/// Opens a page, which must load nothing, complain about nothing and stay within its policy.
pub fn open_quietly(browser: &mut Browser, file: &std::path::Path) {
    let seen = browser.open(file);
    require_quiet(&seen);
    assert_eq!(browser.evaluate("window.violations"), json!([]));
}

pub fn require_quiet(events: &[Value]) {
    for event in events {
        let text = event.to_string();
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                let url = event["params"]["request"]["url"].as_str().unwrap();
                assert!(["file:", "data:", "blob:"].iter().any(|scheme| url.starts_with(scheme)), "{text}");
            }
            "Log.entryAdded" | "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" => panic!("{text}"),
            _ => {}
        }
    }
}

/// As [`require_quiet`] for a page that is served: it asks nobody but its own server.
pub fn require_local(events: &[Value], address: &str) {
    for event in events.iter().filter(|event| event["method"] == "Network.requestWillBeSent") {
        let url = event["params"]["request"]["url"].as_str().unwrap();
        assert!(url.starts_with(address) || url.starts_with("data:"), "{event}");
    }
    assert!(!events.iter().any(|event| event["method"] == "Runtime.exceptionThrown"), "{events:?}");
}

/// The ratio of luminances of a text and what is behind it, as WCAG defines it.
const CONTRAST: &str = "(selector => {
  const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const element = document.querySelector(selector);
  const style = getComputedStyle(element);
  const ink = luminance(numbers(element instanceof SVGElement ? style.fill : style.color));
  let behind = element;
  while (behind && numbers(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
  const ground = luminance(numbers(behind ? getComputedStyle(behind).backgroundColor : 'rgb(255, 255, 255)'));
  return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
})";

/// A run with failures and a known answer.
fn place() -> Place {
    let script = BUMP.replace("awk '{", "awk '$2 > 1 { print \"nan\"; next } {");
    Place::new(&script, "", "max_evaluations = 48\nknown_log_z = -2.46\ntarget_sd = 1e-9\nworkers = 2")
}

#[test]
fn a_report_shows_every_figure_and_works() {
    let Some(mut browser) = Browser::start() else { return };
    let place = place();
    place.run(&["run", "problem.toml", "-q"], 3);
    let before = fs::read(place.path("problem.batchquad/journal.jsonl")).unwrap();
    place.run(&["report", "problem.batchquad"], 0);
    assert_eq!(fs::read(place.path("problem.batchquad/journal.jsonl")).unwrap(), before);
    let html = fs::read_to_string(place.path("problem.html")).unwrap();
    assert!(!html.contains("http:") && !html.contains("https:"), "nothing to load or to follow");
    browser.width(1100);
    open_quietly(&mut browser, &place.path("problem.html"));

    for id in ["convergence", "marginals", "corner", "calibration", "forecasts", "timeline"] {
        let drawn = browser.evaluate(&format!(
            "(e => e && e.getBoundingClientRect().width > 300 && e.querySelectorAll('path, rect').length > 5 && e.getAttribute('aria-label').length > 10)(document.getElementById('{id}'))"
        ));
        assert_eq!(drawn, true, "{id}");
    }
    let ids = "[...document.querySelectorAll('[id]')].map(e => e.id)";
    assert_eq!(browser.evaluate(&format!("{ids}.length === new Set({ids}).size")), true, "ids are used once");
    // Values on hovering.
    assert!(browser.evaluate("document.querySelectorAll('svg title').length").as_u64().unwrap() > 100);
    let words = browser.evaluate("document.body.innerText");
    let words = words.as_str().unwrap().replace('\u{a0}', " ");
    for word in
        ["log Z =", "known answer", "failed", "max_evaluations = 48", "leave one out", "normal(mean 0.0, sd 1.0)"]
    {
        assert!(words.contains(word), "{word} is not in {words}");
    }

    let heads = "[...document.querySelectorAll('#evaluations thead th')]";
    let click = format!("{heads}.find(h => h.textContent === 'log_likelihood').querySelector('button')");
    let column = "[...document.querySelectorAll('#evaluations tbody tr')].map(r => r.cells[4].dataset.v ?? r.cells[4].textContent)";
    for (order, sign) in [("ascending", 1.0), ("descending", -1.0)] {
        browser.evaluate(&format!("{click}.click()"));
        assert_eq!(browser.evaluate(&format!("{click}.parentElement.getAttribute('aria-sort')")), order);
        let values = browser.evaluate(column);
        let cells: Vec<&str> = values.as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
        let numbers: Vec<f64> = cells.iter().take_while(|c| !c.is_empty()).map(|c| c.parse().unwrap()).collect();
        assert!(numbers.windows(2).all(|w| sign * w[0] <= sign * w[1]), "{order}: {cells:?}");
        assert!(
            numbers.len() > 30 && cells[numbers.len()..].iter().all(|c| c.is_empty()),
            "failures come last: {cells:?}"
        );
    }
    // By keyboard: focus and return.
    browser.evaluate(&format!("{heads}[0].querySelector('button').focus()"));
    for kind in ["keyDown", "keyUp"] {
        browser.call(
            "Input.dispatchKeyEvent",
            json!({"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}),
        );
    }
    assert_eq!(browser.evaluate(&format!("{heads}[0].getAttribute('aria-sort')")), "ascending");
    assert_eq!(browser.evaluate("document.querySelector('#evaluations tbody tr').cells[0].textContent"), "0");

    let downloads = browser.dir.path().join("downloads");
    browser.call(
        "Browser.setDownloadBehavior",
        json!({"behavior": "allow", "downloadPath": downloads, "eventsEnabled": true}),
    );
    browser.evaluate(&format!("{click}.click(); document.getElementById('download').click()"));
    browser.wait_for(|e| e["method"] == "Browser.downloadProgress" && e["params"]["state"] == "completed");
    let csv = fs::read_to_string(downloads.join("problem.csv")).unwrap();
    assert_eq!(csv, place.run(&["export", "problem.batchquad"], 0).stdout, "sorting the page does not sort the file");
    assert_eq!(browser.evaluate("window.violations"), json!([]));
    require_quiet(&browser.events());
}

#[test]
fn a_report_is_legible_light_dark_narrow_and_on_paper() {
    let Some(mut browser) = Browser::start() else { return };
    let place = place();
    place.run(&["run", "problem.toml", "-q"], 3);
    place.run(&["report", "problem.batchquad", "-o", "page.html"], 0);
    for (name, dark, width) in
        [("light", false, 1100), ("dark", true, 1100), ("narrow", false, 360), ("narrow-dark", true, 360)]
    {
        browser.dark(dark);
        browser.width(width);
        open_quietly(&mut browser, &place.path("page.html"));
        let overflow = browser.evaluate("document.documentElement.scrollWidth - window.innerWidth");
        let broad = "[...document.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > window.innerWidth + 1 \
                     && !e.closest('.scroll, pre')).map(e => `${e.tagName}.${e.className}: ${e.textContent.slice(0, 60)}`).join('; ')";
        assert_eq!(overflow, 0, "{name}: the page is broader than the window: {}", browser.evaluate(broad));
        for selector in [
            "h1",
            "p",
            ".facts dt",
            "nav a",
            "figcaption",
            ".level",
            ".verdict p",
            "#evaluations td",
            "#download",
            "#convergence text",
        ] {
            let contrast = browser.evaluate(&format!("{CONTRAST}({selector:?})")).as_f64().unwrap();
            assert!(contrast >= 4.5, "{name}: {selector} has a contrast of {contrast:.1}");
        }
        browser.picture(name);
    }
    browser.print("paper");
}

#[test]
fn models_are_compared_on_a_page() {
    let Some(mut browser) = Browser::start() else { return };
    let place = place();
    place.run(&["run", "problem.toml", "-q"], 3);
    place.run(&["run", "problem.toml", "--store", "other<b>.batchquad", "--seed", "9", "-q"], 3);
    place.run(&["compare", "problem.batchquad", "other<b>.batchquad", "--html", "models.html"], 0);
    browser.width(1100);
    open_quietly(&mut browser, &place.path("models.html"));
    assert_eq!(browser.evaluate("document.querySelectorAll('table.models tbody tr').length"), 2);
    assert_eq!(browser.evaluate("document.querySelectorAll('main b').length"), 0);
    for id in ["evidences", "probabilities"] {
        assert_eq!(
            browser.evaluate(&format!("document.getElementById('{id}').querySelectorAll('path').length > 3")),
            true
        );
    }
    browser.picture("compare");
}
