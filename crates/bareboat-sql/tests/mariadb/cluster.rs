//! A private MariaDB server in a temporary folder. It ends with the test program.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use bareboat_sessions::Port;

/// A running server.
pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    pub(crate) port: u16,
    /// Reserves the port while the server is stopped, too.
    _claim: Port,
    process: Mutex<Option<Child>>,
    /// Processes that end the server when the test program ends: a static is never dropped.
    guards: Mutex<Vec<Child>>,
}

/// Returns a command that does not run as root, because the server refuses to run as root.
fn command(program: &str) -> Command {
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt as _;
        own.uid() == 0
    });
    if !root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=mysql", "--regid=mysql", "--clear-groups", "--"])
        .arg(program)
        .env("HOME", "/tmp");
    command
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run(Command::new("chmod").arg("777").arg(folder.path()));
    folder
}

/// Gives a server its own folder for temporary tables: one that starts removes those of all servers that share the folder.
fn temporary(folder: &Path) -> String {
    format!("--tmpdir={}", folder.display())
}

/// Runs the command `then` when the test program ends for any reason: the standard input of the shell ends with the
/// program.
fn guard(then: &str) -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("read _; {then}")]);
    shell.stdin(Stdio::piped()).spawn().unwrap()
}

/// Returns the folder of an installation without content. Creating it takes seconds, so it is created once.
fn template() -> &'static Path {
    static MADE: OnceLock<(tempfile::TempDir, Child)> = OnceLock::new();
    let (made, _) = MADE.get_or_init(|| {
        let folder = folder();
        run(command("mariadb-install-db")
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--innodb-log-file-size=16M",
            ])
            .arg(format!(
                "--datadir={}",
                folder.path().join("data").display()
            ))
            .arg(temporary(folder.path())));
        let guard = guard(&format!("rm -rf '{}'", folder.path().display()));
        (folder, guard)
    });
    made.path()
}

impl Cluster {
    /// Creates a server with `settings`; returns `None` if MariaDB is not installed.
    pub(crate) fn start(settings: &[&str]) -> Option<Self> {
        Command::new("mariadbd").arg("--version").output().ok()?;
        let folder = folder();
        run(command("cp")
            .arg("-r")
            .arg(template().join("data"))
            .arg(folder.path()));
        let claim = Port::free();
        let cluster = Self {
            folder,
            port: claim.number,
            _claim: claim,
            process: Mutex::new(None),
            guards: Mutex::default(),
        };
        cluster.run(settings);
        Some(cluster)
    }

    /// Returns the data folder of the server.
    #[allow(dead_code, reason = "not every suite changes its files")]
    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    /// Starts the server process. It can be called again after the process ended.
    pub(crate) fn run(&self, settings: &[&str]) {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let mut server = command("mariadbd");
        server
            .arg("--no-defaults")
            .arg(format!("--datadir={}", path("data")))
            .arg(temporary(self.folder.path()))
            .arg(format!("--port={}", self.port))
            .arg(format!("--socket={}", path("socket")))
            .arg(format!("--pid-file={}", path("pid")))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve"])
            .args(["--max-connections=400", "--innodb-buffer-pool-size=32M"])
            .arg("--innodb-log-file-size=16M");
        for setting in settings {
            server.arg(format!("--{setting}"));
        }
        let log = std::fs::File::create(path("log")).unwrap();
        server.stdout(Stdio::null()).stderr(log);
        let process = server.spawn().unwrap();
        let guard = guard(&format!(
            "kill -KILL {} 2>/dev/null; sleep 0.2; rm -rf '{}'",
            process.id(),
            self.folder.path().display()
        ));
        self.guards.lock().unwrap().push(guard);
        *self.process.lock().unwrap() = Some(process);
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.ask("SELECT 1").is_none() {
            assert!(
                Instant::now() < deadline,
                "the server does not start: {}",
                std::fs::read_to_string(path("log")).unwrap()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
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

    /// Runs `statement` as the administrator; returns the columns of the first row.
    pub(crate) fn ask(&self, statement: &str) -> Option<String> {
        let output = Command::new("mariadb")
            .args(["--no-defaults", "-h", "127.0.0.1", "-u", "root", "-N", "-B"])
            .args(["-P", &self.port.to_string(), "-e", statement])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then(|| text.replace('\t', "|"))
    }

    /// Returns the address of a database that no other test uses.
    pub(crate) fn fresh(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let database = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.url(self.port, &database)
    }

    /// Returns the address of `database` at `port`; creates the database if it is missing.
    pub(crate) fn url(&self, port: u16, database: &str) -> String {
        self.ask(&format!("CREATE DATABASE IF NOT EXISTS {database}"))
            .expect("the server is up");
        format!("mysql://root@127.0.0.1:{port}/{database}")
    }
}

impl Drop for Cluster {
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

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns the server that most tests share.
pub(crate) fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| {
        let cluster = Cluster::start(&[]);
        cluster.expect("MariaDB is not installed: apt-get install mariadb-server")
    })
}
