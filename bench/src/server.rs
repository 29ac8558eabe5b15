//! The two servers: start, readiness and resource usage.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::args::{Args, Side};
use crate::credentials::{self, Access};
use crate::http1::dial;
use crate::process::{Cpu, Process};

/// Paths of the programs.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) bareboat: Option<PathBuf>,
    pub(crate) peers: PathBuf,
}

impl Programs {
    /// Finds the programs of one side, and builds Bareboat if no path was given.
    pub(crate) fn find(args: &Args, side: Side) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let peers = args
            .peers
            .clone()
            .unwrap_or_else(|| root.join(".cache/peers"));
        if side == Side::Theirs {
            if !peers.join("kube-apiserver").exists() {
                bail!(
                    "{} has no kube-apiserver: run scripts/peers.sh kubernetes servers first",
                    peers.display()
                );
            }
            return Ok(Self {
                bareboat: None,
                peers,
            });
        }
        let bareboat = match &args.bareboat {
            Some(path) => path.clone(),
            None => build_ours(&root)?,
        };
        Ok(Self {
            bareboat: Some(bareboat),
            peers,
        })
    }

    /// Returns the path of Bareboat.
    pub(crate) fn bareboat(&self) -> Result<PathBuf> {
        self.bareboat.clone().context("no bareboat binary")
    }
}

fn build_ours(root: &Path) -> Result<PathBuf> {
    eprintln!("bench: building bareboat");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--profile",
            "dist",
            "-p",
            "bareboat-cli",
            "--message-format=json",
        ])
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !built.status.success() {
        bail!("bareboat could not be built");
    }
    let lines = built.stdout.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    let binary = messages
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back();
    binary.context("cargo named no executable")
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    /// Which server it is.
    pub(crate) side: Side,
    /// Address and credentials.
    pub(crate) access: Access,
    /// Time from spawn until /readyz succeeds and the kubeconfig can be used.
    pub(crate) ready_after: Duration,
    /// Path of its kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    processes: Vec<Process>,
    dir: PathBuf,
}

impl Server {
    /// Starts a server with `flags` and its data in `dir`, and waits until it is ready. kube-apiserver gets an etcd of its
    /// own unless a flag names one.
    pub(crate) async fn start(
        side: Side,
        programs: &Programs,
        dir: &Path,
        flags: &[String],
    ) -> Result<Self> {
        let port = free_port()?;
        let spawned;
        let mut processes = match side {
            Side::Ours => {
                let mut command = Command::new(programs.bareboat()?);
                command
                    .arg("serve")
                    .arg("--data-dir")
                    .arg(dir)
                    .arg("--bind")
                    .arg(format!("127.0.0.1:{port}"))
                    .args(flags);
                spawned = Instant::now();
                vec![Process::spawn(
                    "bareboat",
                    &mut command,
                    &dir.join("bareboat.log"),
                )?]
            }
            Side::Theirs => {
                credentials::write_theirs(dir, port)?;
                let etcd_port = free_port()?;
                spawned = Instant::now();
                let mut processes = Vec::new();
                if !flags.iter().any(|flag| flag.starts_with("--etcd-servers=")) {
                    let mut etcd = etcd(programs, dir, etcd_port, free_port()?);
                    processes.push(Process::spawn("etcd", &mut etcd, &dir.join("etcd.log"))?);
                }
                let mut apiserver = kube_apiserver(programs, dir, port, etcd_port);
                apiserver.args(flags);
                let log = dir.join("kube-apiserver.log");
                processes.push(Process::spawn("kube-apiserver", &mut apiserver, &log)?);
                processes
            }
        };
        until_ready(&format!("127.0.0.1:{port}"), &mut processes)
            .await
            .with_context(|| format!("see the logs in {}", dir.display()))?;
        let kubeconfig = dir.join("admin.kubeconfig");
        let access = until_usable(&kubeconfig).await?;
        let ready_after = spawned.elapsed();
        Ok(Self {
            side,
            access,
            ready_after,
            kubeconfig,
            processes,
            dir: dir.to_owned(),
        })
    }

    /// Starts kube-controller-manager for kube-apiserver; its usage is not counted.
    pub(crate) fn controller_manager(&self, programs: &Programs) -> Result<Process> {
        let mut command = Command::new(programs.peers.join("kube-controller-manager"));
        command.args([
            flag("kubeconfig", &self.kubeconfig),
            flag("service-account-private-key-file", self.dir.join("sa.key")),
            flag("root-ca-file", self.dir.join("ca.crt")),
            flag("cert-dir", &self.dir),
        ]);
        command.args([
            "--leader-elect=false",
            "--secure-port=0",
            "--use-service-account-credentials=false",
        ]);
        Process::spawn(
            "kube-controller-manager",
            &mut command,
            &self.dir.join("kube-controller-manager.log"),
        )
    }

    /// Returns the processor time of all its processes.
    pub(crate) fn cpu(&self) -> Result<Cpu> {
        self.processes
            .iter()
            .try_fold(Cpu::default(), |sum, process| Ok(sum.plus(process.cpu()?)))
    }

    /// Returns the peak resident memory of all its processes since [`Self::forget_peak`], in bytes.
    pub(crate) fn peak(&self) -> Result<u64> {
        self.processes
            .iter()
            .try_fold(0, |sum, process| Ok(sum + process.peak()?))
    }

    /// Resets the peak to the present value.
    pub(crate) fn forget_peak(&self) -> Result<()> {
        self.processes.iter().try_for_each(Process::forget_peak)
    }

    /// Returns the resident memory of all its processes, in bytes.
    pub(crate) fn resident(&self) -> Result<u64> {
        self.processes
            .iter()
            .try_fold(0, |sum, process| Ok(sum + process.resident()?))
    }
}

fn flag(name: &str, value: impl AsRef<Path>) -> String {
    format!("--{name}={}", value.as_ref().display())
}

fn etcd(programs: &Programs, dir: &Path, port: u16, peer_port: u16) -> Command {
    let (clients, peers) = (
        format!("http://127.0.0.1:{port}"),
        format!("http://127.0.0.1:{peer_port}"),
    );
    let mut command = Command::new(programs.peers.join("etcd"));
    command.args([
        flag("data-dir", dir.join("etcd")),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=default={peers}"),
        "--log-level=warn".to_owned(),
        "--quota-backend-bytes=8589934592".to_owned(),
    ]);
    command
}

fn kube_apiserver(programs: &Programs, dir: &Path, port: u16, etcd_port: u16) -> Command {
    let mut command = Command::new(programs.peers.join("kube-apiserver"));
    command.args([
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        format!("--secure-port={port}"),
        flag("cert-dir", dir),
        flag("tls-cert-file", dir.join("server.crt")),
        flag("tls-private-key-file", dir.join("server.key")),
        flag("client-ca-file", dir.join("ca.crt")),
        flag("service-account-key-file", dir.join("sa.pub")),
        flag("service-account-signing-key-file", dir.join("sa.key")),
    ]);
    command.args([
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        "--enable-priority-and-fairness=false",
        "--disable-admission-plugins=ServiceAccount",
    ]);
    command
}

/// Returns a port that is free at the moment.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Polls /readyz every millisecond until it returns 200.
async fn until_ready(authority: &str, processes: &mut [Process]) -> Result<()> {
    let tls = credentials::trusting()?;
    let deadline = Instant::now() + Duration::from_secs(120);
    while Instant::now() < deadline {
        for process in processes.iter_mut() {
            process.check_alive()?;
        }
        // A server that accepts a connection without responding must not stop the polling.
        if let Ok(Ok(true)) =
            tokio::time::timeout(Duration::from_secs(2), ready(authority, &tls)).await
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    bail!("not ready within two minutes")
}

/// Reads the kubeconfig, which a server may write shortly after it becomes ready.
async fn until_usable(kubeconfig: &Path) -> Result<Access> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match Access::from_kubeconfig(kubeconfig) {
            Ok(access) => return Ok(access),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

async fn ready(authority: &str, tls: &Arc<ClientConfig>) -> Result<bool> {
    let mut stream = dial(authority, tls).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await?;
    Ok(head.ends_with(b"200"))
}
