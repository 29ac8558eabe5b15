//! A private etcd server in a temporary folder. It ends with the test program.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bareboat_sessions::Port;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A running etcd member.
pub(crate) struct Member {
    folder: tempfile::TempDir,
    name: String,
    pub(crate) port: u16,
    /// The ports for clients and for peers, reserved while the member is stopped, too.
    _ports: [Port; 2],
    peer: String,
    /// All members with their addresses.
    cluster: String,
    process: std::sync::Mutex<Option<Child>>,
    /// Processes that end the member when the test program ends for any reason: a static is never dropped.
    guards: std::sync::Mutex<Vec<Child>>,
}

/// Returns the path of the etcd program: among the peers, or in `PATH`.
fn program() -> Option<PathBuf> {
    let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = match std::env::var_os("BAREBOAT_PEERS") {
        Some(peers) => vec![PathBuf::from(peers)],
        None => own
            .ancestors()
            .map(|dir| dir.join(".cache/peers"))
            .collect(),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    let mut found = folders.into_iter().map(|folder| folder.join("etcd"));
    found.find(|program| program.is_file())
}

impl Member {
    /// Creates a cluster of one member with `flags`; returns `None` if etcd is not built.
    pub(crate) fn start(flags: &[&str]) -> Option<Self> {
        program()?;
        let member = Self::several(1).pop()?;
        member.run(flags);
        Some(member)
    }

    /// Creates a cluster of `count` members.
    pub(crate) fn cluster(count: usize) -> Vec<Self> {
        let members = Self::several(count);
        // No member is up without a majority.
        for member in &members {
            member.spawn(&[]);
        }
        members.iter().for_each(Self::wait);
        members
    }

    fn several(count: usize) -> Vec<Self> {
        let each = |n| {
            let ports = [Port::free(), Port::free()];
            Self {
                folder: tempfile::tempdir().unwrap(),
                name: format!("m{n}"),
                port: ports[0].number,
                peer: format!("http://127.0.0.1:{}", ports[1].number),
                _ports: ports,
                cluster: String::new(),
                process: std::sync::Mutex::new(None),
                guards: std::sync::Mutex::default(),
            }
        };
        let mut members: Vec<Self> = (0..count).map(each).collect();
        let pairs = members
            .iter()
            .map(|member| format!("{}={}", member.name, member.peer));
        let cluster = pairs.collect::<Vec<_>>().join(",");
        for member in &mut members {
            member.cluster.clone_from(&cluster);
        }
        members
    }

    /// Returns the data folder of the member.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts the process and waits until the member can be used. It can be called again after the process ended.
    pub(crate) fn run(&self, flags: &[&str]) {
        self.spawn(flags);
        self.wait();
    }

    fn spawn(&self, flags: &[&str]) {
        let scheme = match flags.iter().any(|flag| flag.starts_with("--cert-file")) {
            true => "https",
            false => "http",
        };
        let client = format!("{scheme}://127.0.0.1:{}", self.port);
        // A single member can elect itself after a short timeout.
        let (heartbeat, election) = match self.cluster.contains(',') {
            true => ("100", "1000"),
            false => ("20", "200"),
        };
        let mut server = Command::new(program().unwrap());
        server
            .arg("--data-dir")
            .arg(self.data())
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--name", &self.name])
            .args(["--listen-peer-urls", &self.peer])
            .args(["--initial-advertise-peer-urls", &self.peer])
            .args(["--initial-cluster", &self.cluster])
            .args(["--log-level", "warn"])
            .args(["--heartbeat-interval", heartbeat])
            .args(["--election-timeout", election])
            .args(flags);
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        server.stdout(Stdio::null()).stderr(log);
        let process = server.spawn().unwrap();
        // The standard input of the guard ends with the test program.
        let guard = format!(
            "read _; kill -KILL {} 2>/dev/null; sleep 0.2; rm -rf '{}'",
            process.id(),
            self.folder.path().display()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &guard]).stdin(Stdio::piped());
        self.guards.lock().unwrap().push(shell.spawn().unwrap());
        *self.process.lock().unwrap() = Some(process);
    }

    fn wait(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.is_up() {
            let log = || std::fs::read_to_string(self.folder.path().join("log"));
            assert!(
                Instant::now() < deadline,
                "etcd does not start: {:?}",
                log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns whether the member listens. A member listens once it has a leader.
    fn is_up(&self) -> bool {
        std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    /// Returns the ID of the running process.
    #[allow(dead_code, reason = "not every suite stops the process")]
    pub(crate) fn pid(&self) -> u32 {
        self.process.lock().unwrap().as_ref().unwrap().id()
    }

    /// Kills the process. Its memory is lost, as in a power failure.
    pub(crate) fn kill(&self) {
        if let Some(mut process) = self.process.lock().unwrap().take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Returns the address of a prefix that no other test uses.
    pub(crate) fn fresh(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let prefix = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.url(self.port, &prefix)
    }

    /// Returns the address of `prefix` at `port`.
    pub(crate) fn url(&self, port: u16, prefix: &str) -> String {
        format!("etcd://127.0.0.1:{port}/{prefix}")
    }

    /// Sends `request` to `path` of the JSON gateway, such as `kv/range`, as `etcdctl` would. Returns the answer.
    pub(crate) fn ask(&self, path: &str, request: &str) -> String {
        self.ask_as("", path, request)
    }

    /// The same with the token of a user.
    pub(crate) fn ask_as(&self, token: &str, path: &str, request: &str) -> String {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let len = request.len();
        write!(
            stream,
            "POST /v3/{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{request}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer
    }

    /// Returns the paths that begin with `below` under `prefix`.
    pub(crate) fn paths(&self, prefix: &str, below: &str) -> Vec<String> {
        let (from, mut to) = (format!("{prefix}{below}"), format!("{prefix}{below}"));
        to.pop();
        to.push('0');
        let request = format!(
            r#"{{"key":"{}","range_end":"{}","keys_only":true}}"#,
            base64(from.as_bytes()),
            base64(to.as_bytes())
        );
        let answer = self.ask("kv/range", &request);
        let keys = answer.split(r#""key":""#).skip(1);
        let keys = keys.map(|rest| plain(rest.split('"').next().unwrap()));
        keys.map(|key| key.strip_prefix(prefix).unwrap().to_owned())
            .collect()
    }

    /// Returns the value of `key`.
    pub(crate) fn get(&self, key: &str) -> String {
        let request = format!(r#"{{"key":"{}"}}"#, base64(key.as_bytes()));
        let answer = self.ask("kv/range", &request);
        let (_, rest) = answer.split_once(r#""value":""#).unwrap();
        plain(rest.split('"').next().unwrap())
    }

    /// Writes `value` to `key`.
    pub(crate) fn put(&self, key: &str, value: &str) {
        let (key, value) = (base64(key.as_bytes()), base64(value.as_bytes()));
        self.ask("kv/put", &format!(r#"{{"key":"{key}","value":"{value}"}}"#));
    }

    /// Returns the number of calls that the member has answered, from its metrics.
    pub(crate) fn calls(&self) -> u64 {
        let text = self.metrics();
        let counters = text
            .lines()
            .filter(|line| line.starts_with("grpc_server_handled_total") && line.contains("unary"));
        let counts = counters.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        counts.sum::<f64>() as u64
    }

    /// Returns a metric without labels.
    #[allow(dead_code, reason = "not every suite reads metrics")]
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.metrics();
        let line = text
            .lines()
            .find(|line| line.split(' ').next() == Some(name));
        line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
    }

    fn metrics(&self) -> String {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let get = "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
        stream.write_all(get.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// Returns the current revision of etcd.
    pub(crate) fn revision(&self) -> u64 {
        let answer = self.ask("kv/range", r#"{"key":"AA=="}"#);
        let (_, rest) = answer.split_once(r#""revision":""#).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    }

    /// Clears the alarm NOSPACE.
    pub(crate) fn disarm(&self) {
        let alarms = self.ask("maintenance/alarm", r#"{"action":"GET"}"#);
        let (_, rest) = alarms.split_once(r#""memberID":""#).unwrap();
        let member = rest.split('"').next().unwrap();
        let request =
            format!(r#"{{"action":"DEACTIVATE","memberID":"{member}","alarm":"NOSPACE"}}"#);
        self.ask("maintenance/alarm", &request);
    }

    /// Compacts everything up to `revision` of etcd, as another program would.
    pub(crate) fn compact(&self, revision: u64) {
        let request = format!(r#"{{"revision":"{revision}","physical":true}}"#);
        self.ask("kv/compaction", &request);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        for guard in self.guards.lock().unwrap().iter_mut() {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
        if let Some(mut process) = self.process.lock().unwrap().take() {
            let _ = process.wait();
        }
    }
}

/// Encodes keys and values in base64, as the JSON gateway expects.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn plain(text: &str) -> String {
    String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
}

/// Exclusive use of an etcd server by one test, because compaction affects the whole server. The next test gets the
/// server when this test ends.
pub(crate) struct Lease(&'static Member);

static IDLE: std::sync::Mutex<Vec<&'static Member>> = std::sync::Mutex::new(Vec::new());

pub(crate) fn lease() -> Lease {
    if let Some(member) = IDLE.lock().unwrap().pop() {
        return Lease(member);
    }
    let member = Member::start(&[]);
    let member = member.expect("etcd is not built: scripts/peers.sh kubernetes");
    Lease(Box::leak(Box::new(member)))
}

impl std::ops::Deref for Lease {
    type Target = Member;

    fn deref(&self) -> &Member {
        self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A failed test may have left the server in any state.
        if !std::thread::panicking() {
            IDLE.lock().unwrap().push(self.0);
        }
    }
}
