//! Defaults, validation and stored options.

use super::*;

#[test]
fn every_option_is_documented_and_its_default_parses_and_passes() {
    let table = Options::table();
    assert!(table.len() <= 24, "the budget for options");
    let mut options = Options::new();
    for info in &table {
        options.set(info.name, &info.default).unwrap();
        for text in [info.about, info.accepted, info.trade_off, info.takes_effect] {
            assert!(!text.is_empty(), "{}", info.name);
        }
    }
    assert_eq!(options.given().len(), table.len());
    options.settings().unwrap();
}

#[test]
fn values_out_of_range_and_unknown_names_are_refused() {
    let mut options = Options::new();
    assert!(options.set("read_mode", "psychic").is_err());
    assert!(options.set("memory", "1GiB").unwrap_err().to_string().contains("memory_budget"));
    options.set("memory_budget", "7").unwrap();
    let error = options.settings().unwrap_err().to_string();
    assert!(error.contains("memory_budget is 7") && error.contains("1 MiB"), "{error}");
    let mut design = default_design();
    design.buffer_bytes = 0;
    assert!(Options::new().design(design).settings().is_err());
}

#[test]
fn given_values_take_the_place_of_stored_ones() {
    let stored = [
        ("durability".to_owned(), "sync".to_owned()),
        ("read_threads".to_owned(), "3".to_owned()),
        ("gone_since_long".to_owned(), "yes".to_owned()),
    ];
    let stored = stored.iter().map(|(name, value)| (name, value));
    let options = Options::new().read_threads(5).or_stored(stored).unwrap();
    let settings = options.settings().unwrap();
    assert_eq!(settings.durability, Durability::Sync);
    assert_eq!(settings.read_threads, 5);
    assert_eq!(settings.read_mode, ReadMode::Cached);
}
