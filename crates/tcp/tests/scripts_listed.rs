//! `docs/tcp-scripts.md` names every script of `tests/scripts`, and no other.

use std::collections::BTreeSet;
use std::path::Path;

/// Words in backticks of the table rows that could be names of scripts: no dots, slashes or blanks.
fn named(page: &str) -> BTreeSet<&str> {
    page.lines()
        .filter(|line| line.starts_with('|'))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|word| !word.contains(['.', '/', ' ']))
        .collect()
}

#[test]
fn the_page_lists_the_scripts_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/tcp-scripts.md"))
        .expect("docs/tcp-scripts.md is part of the source");
    let files: Vec<String> = std::fs::read_dir(root.join("tests/scripts"))
        .expect("tests/scripts is part of the source")
        .map(|entry| entry.expect("a readable folder").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_string()))
        .collect();
    let there: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    let named = named(&page);
    let missing: Vec<_> = there.difference(&named).collect();
    let gone: Vec<_> = named.difference(&there).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
    assert!(gone.is_empty(), "on the page, but no script: {gone:?}");
}
