//! The C example, compiled against the header and both libraries, and what the functions refuse.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use sojournpath::*;

/// Where cargo has put the libraries.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent().expect("it is in a folder").to_owned()
}

fn succeeds(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}: {out}{err}");
    out.into_owned()
}

#[test]
#[cfg(target_os = "linux")]
fn the_c_example_runs_with_both_libraries() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let libraries = libraries();
    let fixed = libraries.join("libsojournpath.a");
    let mut printed = Vec::new();
    for (kind, links) in [
        ("static", vec![fixed.as_os_str()]),
        ("shared", vec!["-lsojournpath".as_ref()]),
    ] {
        let program = libraries.join(format!("bottleneck-{kind}-{}", std::process::id()));
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
            .arg(here.join("include"));
        cc.arg(here.join("examples/bottleneck.c"))
            .arg("-L")
            .arg(&libraries)
            .args(links);
        cc.args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program);
        succeeds(&mut cc);
        printed.push(succeeds(
            Command::new(&program).env("LD_LIBRARY_PATH", &libraries),
        ));
        std::fs::remove_file(&program).expect("it was compiled");
    }
    assert!(
        printed[0].starts_with("sent 2000, arrived "),
        "{}",
        printed[0]
    );
    assert_eq!(printed[0], printed[1]);
}

/// The header is that of cbindgen, where that is installed; GitHub's checks install it.
#[test]
fn the_header_is_that_of_the_code() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cbindgen = Command::new("cbindgen")
        .arg("--verify")
        .arg("--output")
        .arg("include/sojournpath.h")
        .current_dir(here)
        .output();
    match cbindgen {
        Ok(output) => assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(_) => eprintln!("cbindgen is not installed: the header was not compared"),
    }
    // Without it, at least every function and number of the code is in the header.
    let header = include_str!("../include/sojournpath.h");
    let sources = [
        include_str!("../src/lib.rs"),
        include_str!("../src/path.rs"),
        include_str!("../src/records.rs"),
    ];
    let mut found = 0;
    for line in sources.iter().flat_map(|source| source.lines()) {
        let name = ["extern \"C\" fn ", "pub const "]
            .iter()
            .find_map(|before| line.split_once(before));
        let Some((_, rest)) = name.filter(|(_, rest)| rest.to_lowercase().starts_with("sojourn"))
        else {
            continue;
        };
        let name = rest.split(['(', ':']).next().unwrap_or_default();
        assert!(header.contains(name), "{name} is not in the header");
        found += 1;
    }
    assert!(found > 25, "{found}");
}

fn path() -> *mut sojourn_path {
    let options = sojourn_options {
        rate: c"8 Mbit/s".as_ptr(),
        rtt: c"20 ms".as_ptr(),
        ..nothing()
    };
    // SAFETY: the options are valid.
    let path = unsafe { sojourn_path_new(&options, ptr::null_mut(), 0) };
    assert!(!path.is_null());
    path
}

fn nothing() -> sojourn_options {
    sojourn_options {
        size: size_of::<sojourn_options>(),
        rate: ptr::null(),
        rtt: ptr::null(),
        aqm: ptr::null(),
        keys: ptr::null(),
        up_rate: ptr::null(),
        up_aqm: ptr::null(),
        up_keys: ptr::null(),
        impair: ptr::null(),
        up_impair: ptr::null(),
        seed: 0,
    }
}

fn packet() -> sojourn_packet {
    sojourn_packet {
        size: size_of::<sojourn_packet>(),
        user: 42,
        bytes: 1000,
        source: 1,
        destination: 2,
        source_port: 3,
        destination_port: 4,
        protocol: 17,
        ecn: SOJOURN_ECT0,
        dscp: 0,
        way: SOJOURN_DOWN,
    }
}

fn error_of(path: *const sojourn_path) -> String {
    // SAFETY: the path is valid, and so is its text.
    unsafe { std::ffi::CStr::from_ptr(sojourn_path_error(path)) }
        .to_str()
        .expect("UTF-8")
        .to_owned()
}

#[test]
fn options_that_are_refused_are_told() {
    let rate = || sojourn_options {
        rate: c"8 Mbit/s".as_ptr(),
        rtt: c"20 ms".as_ptr(),
        ..nothing()
    };
    let cases = [
        (nothing(), "rate: got NULL; is required"),
        (
            sojourn_options { size: 3, ..rate() },
            "sojourn_options: got size 3; must be sizeof",
        ),
        (
            sojourn_options {
                rate: c"fast".as_ptr(),
                ..rate()
            },
            "rate: got \"fast\"",
        ),
        (
            sojourn_options {
                aqm: c"codell".as_ptr(),
                ..rate()
            },
            "aqm: got \"codell\"; must be one of",
        ),
        (
            sojourn_options {
                aqm: c"codel".as_ptr(),
                keys: c"target".as_ptr(),
                ..rate()
            },
            "keys: got \"target\"; must be like",
        ),
        (
            sojourn_options {
                keys: c"target=5 ms".as_ptr(),
                ..rate()
            },
            "keys: needs aqm",
        ),
        (
            sojourn_options {
                impair: c"lossy=1".as_ptr(),
                ..rate()
            },
            "impair: got \"lossy\"; must be one of loss",
        ),
        (
            sojourn_options {
                up_impair: c"loss=2".as_ptr(),
                ..rate()
            },
            "up_impair: ",
        ),
        (
            sojourn_options {
                rate: c"\xff".as_ptr(),
                ..rate()
            },
            "rate: must be UTF-8",
        ),
    ];
    for (options, part) in cases {
        let mut error = [1_u8; 120];
        // SAFETY: the options and the text are valid.
        let path = unsafe { sojourn_path_new(&options, error.as_mut_ptr().cast(), error.len()) };
        assert!(path.is_null());
        let error = std::ffi::CStr::from_bytes_until_nul(&error)
            .expect("it ends")
            .to_str()
            .expect("UTF-8");
        assert!(error.starts_with(part), "{error}");
    }
    // SAFETY: both may be NULL.
    assert!(unsafe { sojourn_path_new(ptr::null(), ptr::null_mut(), 0) }.is_null());
}

#[test]
fn a_call_that_is_refused_changes_nothing() {
    let path = path();
    let wrong = [
        sojourn_packet { way: 2, ..packet() },
        sojourn_packet { ecn: 4, ..packet() },
        sojourn_packet {
            bytes: 0,
            ..packet()
        },
        sojourn_packet {
            dscp: 64,
            ..packet()
        },
        sojourn_packet {
            size: 8,
            ..packet()
        },
    ];
    // SAFETY: the path and the structs are valid.
    unsafe {
        for packet in &wrong {
            assert_eq!(sojourn_path_send(path, 5, packet, ptr::null_mut()), -1);
            assert!(error_of(path).contains("got"), "{}", error_of(path));
        }
        assert_eq!(sojourn_path_send(path, 5, ptr::null(), ptr::null_mut()), -1);
        assert_eq!(sojourn_path_next_event(path), SOJOURN_NEVER);
        assert_eq!(sojourn_path_send(path, 5, &packet(), ptr::null_mut()), 0);
        assert_eq!(error_of(path), "");
        assert_eq!(sojourn_path_send(path, 4, &packet(), ptr::null_mut()), -1);
        assert_eq!(error_of(path), "now_ns: got 4; must not be before 5");
        assert_eq!(
            sojourn_path_set_rate(path, SOJOURN_UP, c"1 Mbit/s".as_ptr()),
            -1
        );
        assert_eq!(sojourn_path_set_delay(path, ptr::null()), -1);
        sojourn_path_free(path);
        sojourn_path_free(ptr::null_mut());
    }
}

/// A caller that was compiled with an older header has shorter structs, one with a newer header longer ones.
#[test]
fn structs_of_other_sizes_are_read_and_written_as_far_as_they_go() {
    #[repr(C)]
    struct Longer {
        delivery: sojourn_delivery,
        new: u64,
    }
    let path = path();
    let (mut number, mut least) = (0, [7_u64; 8]);
    // SAFETY: the path and the structs are valid.
    unsafe {
        assert_eq!(sojourn_path_send(path, 0, &packet(), &mut number), 0);
        assert_eq!(sojourn_path_send(path, 0, &packet(), &mut number), 0);
        assert_eq!(number, 1);
        let mut longer: Longer = std::mem::zeroed();
        (longer.delivery.size, longer.new) = (size_of::<Longer>(), 7);
        assert_eq!(
            sojourn_path_poll(path, 1_000_000_000, (&raw mut longer).cast()),
            1
        );
        let out = longer.delivery;
        assert_eq!(
            (out.user, out.number, out.at_ns, out.ecn, longer.new),
            (42, 0, 10_000_000, SOJOURN_ECT0, 7)
        );
        assert_eq!(out.size, size_of::<Longer>());
        // The least that the first version has: 56 bytes; what follows is not touched.
        least[0] = 56;
        assert_eq!(
            sojourn_path_poll(path, 1_000_000_000, least.as_mut_ptr().cast()),
            1
        );
        assert_eq!((least[0], least[1], least[2], least[7]), (56, 42, 1, 7));
        assert_eq!(
            sojourn_path_poll(path, 1_000_000_000, least.as_mut_ptr().cast()),
            0
        );
        sojourn_path_free(path);
    }
}
