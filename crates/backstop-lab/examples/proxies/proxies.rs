//! nginx and Backstop, configured for the same work.

use std::net::SocketAddr;
use std::path::Path;

use crate::process::{Failed, Process, folder, free_port};
use crate::work::{LIMIT, Work};

/// A running proxy and the port on which it expects its origin.
pub(crate) struct Proxy {
    pub(crate) process: Process,
    pub(crate) listen: SocketAddr,
    pub(crate) origin: SocketAddr,
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Backstop with one thread and its whole policy on.
pub(crate) fn backstop(work: Work, binary: &Path) -> Result<Proxy, Failed> {
    let (listen, admin, origin) = (free_port()?, free_port()?, free_port()?);
    let folder = folder()?;
    let (class, limit) = match work {
        Work::Pass | Work::Refusal => ("direct", ""),
        Work::Read | Work::Copies => {
            ("public_read", "max_age = \"1h\"\nkey = []\ncorrect = { type = \"application/json\" }\n")
        }
    };
    let in_flight = if work == Work::Refusal { LIMIT } else { 2000 };
    let policy = format!(
        "[gateway]\nlisten = \"127.0.0.1:{listen}\"\nadmin = \"127.0.0.1:{admin}\"\nin_flight = 4000\nthreads = 1\n\
         [store]\nsnapshots = {{ memory = \"64 MiB\", disk = \"0 B\" }}\n\
         [dependency.origin]\nurl = \"http://127.0.0.1:{origin}\"\nconnections = 256\n\
         [route.all.{class}]\nmatch = \"GET /{{rest*}}\"\ndependency = \"origin\"\ndeadline = \"2s\"\nin_flight = {in_flight}\n{limit}"
    );
    std::fs::write(folder.join("policy.toml"), policy)?;
    let process = Process::start(&std::path::absolute(binary)?, &["run", "policy.toml"], folder, "0")?;
    Ok(Proxy { process, listen: loopback(listen), origin: loopback(origin) })
}

/// nginx with one process and the nearest that it has.
pub(crate) fn nginx(work: Work) -> Result<Proxy, Failed> {
    let (listen, origin) = (free_port()?, free_port()?);
    let folder = folder()?;
    let location = match work {
        // nginx keeps no copy and checks nothing here.
        Work::Pass | Work::Read => String::new(),
        // A copy is old at once, so every request asks the origin and falls back to it.
        Work::Copies => {
            "proxy_cache copies; proxy_cache_valid 200 1s; proxy_cache_use_stale error timeout;\n".into()
        }
        Work::Refusal => format!("limit_conn all {LIMIT}; limit_conn_status 503;\n"),
    };
    let config = format!(
        "daemon off; master_process off; error_log /dev/null; pid nginx.pid;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\n access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;\n\
         keepalive_requests 1000000000;\n\
         limit_conn_zone $server_name zone=all:1m;\n\
         proxy_cache_path c keys_zone=copies:8m;\n\
         upstream origin {{ server 127.0.0.1:{origin} max_fails=0; keepalive 256; keepalive_requests 1000000000; }}\n\
         server {{ listen 127.0.0.1:{listen} backlog=4096; server_name bench; location / {{\n\
         proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host $host;\n{location} }} }} }}\n"
    );
    std::fs::write(folder.join("nginx.conf"), config)?;
    let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"]
        .iter()
        .map(Path::new)
        .find(|path| path.exists());
    let program = program.ok_or("nginx is not installed; scripts/test-servers installs it")?;
    let prefix = format!("{}/", folder.display());
    let process = Process::start(program, &["-p", &prefix, "-c", "nginx.conf", "-e", "stderr"], folder, "0")?;
    Ok(Proxy { process, listen: loopback(listen), origin: loopback(origin) })
}
