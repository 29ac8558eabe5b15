//! What kubectl does with the streams of a pod `web`, whatever serves them.

use super::Client;
use crate::process::{eventually, run};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::spawn;

/// Checks exec, attach, port-forward and cp.
pub(super) fn streams_work(client: &Client) {
    exec(client);
    attach(client);
    ports(client);
    copy(client);
    terminal(client);
}

fn exec(client: &Client) {
    assert_eq!(client.gives("exec web -- echo hello", ""), "hello\n");
    let both = client.run("exec web -- sh -c 'echo out; echo err >&2; exit 7'", "");
    assert_eq!(both.status.code(), Some(7), "{}", both.all());
    assert_eq!(both.stdout, "out\n");
    assert!(both.stderr.contains("err\n"), "{}", both.stderr);
    assert!(
        both.stderr.contains("command terminated with exit code 7"),
        "{}",
        both.stderr
    );
    // The end of the input reaches the command.
    let input = "a line\n".repeat(40_000);
    let echoed = client.gives("exec -i web -- cat", &input);
    assert!(echoed == input, "{} of {}", echoed.len(), input.len());
    let large = client.gives("exec web -- sh -c 'yes | head -c 3000000'", "");
    assert_eq!(large.len(), 3_000_000);
    // A command that reads nothing does not wait for its input.
    assert_eq!(client.gives("exec -i web -- echo done", &input), "done\n");
}

fn attach(client: &Client) {
    let text = client.gives("attach -i web -c app", "hello\n");
    assert!(text.contains("attached to app"), "{text}");
    assert!(text.contains("hello"), "{text}");
}

/// A server that returns what it reads, backwards, when its client has sent everything.
fn reverser() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            spawn(move || {
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
                all.reverse();
                let _ = stream.write_all(&all);
            });
        }
    });
    port
}

fn ports(client: &Client) {
    let target = reverser();
    let mut forwarding = client
        .command(&format!("port-forward web :{target}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(forwarding.stdout.take().unwrap()).lines();
    let line = lines.next().expect("a line").unwrap();
    let port = line
        .split("127.0.0.1:")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let port: u16 = port.unwrap().parse().unwrap();
    let sent: Vec<u8> = (0..500_000u32).map(|number| number as u8).collect();
    for _ in 0..3 {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut writer = connection.try_clone().unwrap();
        let bytes = sent.clone();
        let writing = spawn(move || {
            writer.write_all(&bytes).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut read = Vec::new();
        connection.read_to_end(&mut read).unwrap();
        writing.join().unwrap();
        read.reverse();
        assert!(read == sent, "{} of {} bytes", read.len(), sent.len());
    }
    forwarding.kill().unwrap();
    forwarding.wait().unwrap();
}

fn copy(client: &Client) {
    let text = "a file\n".repeat(1000);
    std::fs::write(client.home.join("here.txt"), &text).unwrap();
    let there = client.home.join("there.txt");
    client.gives(&format!("cp here.txt web:{}", there.display()), "");
    assert_eq!(std::fs::read_to_string(&there).unwrap(), text);
    client.gives(&format!("cp web:{} back.txt", there.display()), "");
    let back = std::fs::read_to_string(client.home.join("back.txt")).unwrap();
    assert_eq!(back, text);
}

/// Runs kubectl in a terminal, and checks that its size arrives.
fn terminal(client: &Client) {
    if Command::new("script").arg("--version").output().is_err() {
        return;
    }
    let inner = client.command("exec -it web -- terminal-size");
    let arguments: Vec<String> = std::iter::once(inner.get_program())
        .chain(inner.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let line = format!("stty rows 31 cols 97; {}", arguments.join(" "));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    for (name, value) in inner.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let output = run(&mut command, "");
    assert!(output.stdout.contains("97x31"), "{}", output.all());
}

/// Checks that a stream ends when its user loses the right to it.
pub(super) fn a_lost_right_ends_a_log(client: &Client) {
    client.apply(&super::pod("endless", "n1"));
    client.gives("create role reader --verb=get --resource=pods,pods/log", "");
    client.gives("create rolebinding readers --role=reader --user=rita", "");
    let mut following = client
        .command("--as rita logs -f endless")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let found = lines
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line == "line 3");
    assert!(found.is_some());
    client.gives("delete rolebinding readers", "");
    eventually("the log ends", || following.try_wait().unwrap());
}
