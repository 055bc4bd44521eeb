//! The containers' programs in the tests. The model is told what each real program does.

use bytes::Bytes;
use container_engine::{
    Stream,
    fake::{Behaviour, BuildScript, Fake, Life, ProgramStep, Script, Wellness},
};

/// Runs until it is killed.
pub const STUBBORN: &[&str] = &["sh", "-c", "trap '' TERM; while :; do sleep 1; done"];
/// Exits at once with 7.
pub const SEVEN: &[&str] = &["sh", "-c", "exit 7"];
/// Does not exist.
pub const MISSING: &[&str] = &["/no/such/program"];
/// Uses as much of the processor as it may.
pub const BUSY: &[&str] = &["sh", "-c", "while :; do :; done"];
/// Answers on port 8080 with `well`.
pub const SERVER: &[&str] = &[
    "perl",
    "-MIO::Socket::INET",
    "-e",
    "$SIG{TERM} = sub { exit 0 }; my $s = IO::Socket::INET->new(LocalPort => 8080, Listen => 5, \
     ReuseAddr => 1); while (my $c = $s->accept) { print $c \"HTTP/1.0 200 OK\\r\\n\\r\\nwell\"; \
     close $c }",
];
/// Writes lines to both streams, and continues to run.
pub const WRITER: &[&str] = &[
    "sh",
    "-c",
    "trap 'exit 0' TERM; for n in 1 2 3; do echo out $n; sleep 0.05; echo err $n >&2; \
     sleep 0.05; done; sleep infinity & wait",
];
/// Writes one line to standard error and a hundred to standard output, and continues to run.
pub const CHATTER: &[&str] =
    &["sh", "-c", "trap 'exit 0' TERM; echo hidden >&2; sleep 0.2; seq 100; sleep infinity & wait"];

/// Health commands.
pub const IS_WELL: &[&str] = &["true"];
pub const IS_SICK: &[&str] = &["false"];

/// Programs for exec.
pub const EXIT_3: &[&str] = &["sh", "-c", "exit 3"];
pub const BOTH: &[&str] = &["sh", "-c", "echo out; echo err >&2; echo out again"];
pub const SECRET: &[&str] = &["sh", "-c", "printf %s \"$SECRET\""];
pub const MUCH: &[&str] = &["seq", "2000000"];
pub const FIRST_LINE: &[&str] = &["head", "-n", "1"];
pub const SLOW: &[&str] = &["sh", "-c", "echo begun; sleep 4242"];
pub const TOO_LONG: &[&str] = &["sh", "-c", "echo begun; sleep 4343"];

pub fn much() -> Vec<u8> {
    (1..=2_000_000).flat_map(|n: u32| format!("{n}\n").into_bytes()).collect()
}

/// Tells the model what the programs do.
pub fn teach(fake: &Fake) {
    fake.on_start(|spec| {
        let command = spec.command.clone().unwrap_or_default();
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let lines = |texts: &[(Stream, &str)]| -> Vec<(Stream, String)> {
            texts.iter().map(|(stream, text)| (*stream, (*text).to_owned())).collect()
        };
        let mut behaviour = Behaviour::default();
        if words == STUBBORN {
            behaviour.ignores_stop = true;
        } else if words == SEVEN {
            behaviour.life = Life::Exits(7);
        } else if words == MISSING {
            behaviour.life = Life::CannotStart("no such file or directory".to_owned());
        } else if words == BUSY {
            behaviour.cpu_millis = 2000;
        } else if words == WRITER {
            behaviour.output = lines(&[
                (Stream::Out, "out 1"),
                (Stream::Err, "err 1"),
                (Stream::Out, "out 2"),
                (Stream::Err, "err 2"),
                (Stream::Out, "out 3"),
                (Stream::Err, "err 3"),
            ]);
        } else if words == CHATTER {
            behaviour.output = lines(&[(Stream::Err, "hidden")]);
            behaviour.output.extend((1..=100).map(|n| (Stream::Out, n.to_string())));
        }
        let health = spec.health.as_ref().map(|health| health.command.join(" "));
        if health.as_deref() == Some("false") {
            behaviour.health = Wellness::Unhealthy;
        }
        Some(behaviour)
    });
    fake.on_exec(|call| {
        let command: Vec<&str> = call.exec.command.iter().map(String::as_str).collect();
        let out = |text: &'static str| ProgramStep::Out(Bytes::from_static(text.as_bytes()));
        let script: Script = if command == EXIT_3 {
            vec![ProgramStep::Exit(3)]
        } else if command == BOTH {
            vec![out("out\n"), ProgramStep::Err(Bytes::from_static(b"err\n")), out("out again\n")]
        } else if command == SECRET {
            let secret = call.exec.env.get("SECRET").cloned().unwrap_or_default();
            vec![ProgramStep::Out(Bytes::from(secret))]
        } else if command == MUCH {
            vec![ProgramStep::Out(Bytes::from(much()))]
        } else if command == FIRST_LINE {
            vec![out("first\n")]
        } else if command == SLOW {
            vec![out("begun\n"), ProgramStep::Wait]
        } else if command == TOO_LONG {
            vec![out("begun\n"), ProgramStep::Exit(124)]
        } else {
            return None;
        };
        Some(script)
    });
    fake.on_build(|call| {
        let context = String::from_utf8_lossy(&call.context);
        let lines = ["Step 1/2 : FROM toolbox", "Step 2/2 : RUN", "hello from the build"];
        context.contains("exit 3").then(|| BuildScript {
            lines: lines.map(str::to_owned).to_vec(),
            failure: Some("the command 'exit 3' returned a non-zero code: 3".to_owned()),
        })
    });
    fake.on_build(|call| {
        let context = String::from_utf8_lossy(&call.context);
        (!context.contains("exit 3")).then(|| BuildScript {
            lines: vec!["Step 1/2 : FROM toolbox".to_owned(), "hello from the build".to_owned()],
            failure: None,
        })
    });
}
