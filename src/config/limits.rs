//! How much the service takes: sizes, numbers and times.

use clap::Args;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// The maximum size of an artifact, in bytes.
    #[arg(long, env = "SVC_MAX_ARTIFACT_BYTES", default_value_t = 4 << 30)]
    pub max_artifact_bytes: u64,
    /// The maximum size of a JSON body, in bytes.
    #[arg(long, env = "SVC_MAX_BODY_BYTES", default_value_t = 1 << 20)]
    pub max_body_bytes: usize,
    /// The maximum number of open connections. The limit of open files may lower it.
    #[arg(long, env = "SVC_MAX_CONNECTIONS", default_value_t = 10_000)]
    pub max_connections: usize,
    /// Memory for JSON bodies that are still arriving, in bytes.
    #[arg(long, env = "SVC_MAX_ARRIVING_BYTES", default_value_t = 64 << 20)]
    pub max_arriving_bytes: usize,
    /// The maximum number of uploads that send at the same time.
    #[arg(long, env = "SVC_MAX_UPLOADS", default_value_t = 128)]
    pub max_uploads: usize,
    /// The most text of a log in one reply, in bytes.
    #[arg(
        long,
        env = "SVC_MAX_LOG_BYTES",
        default_value_t = 1 << 20,
        value_parser = clap::value_parser!(u64).range(1024..=64 << 20)
    )]
    pub max_log_bytes: u64,
    /// The lifetime of an upload address, in seconds.
    #[arg(long, env = "SVC_UPLOAD_URL_TTL", default_value_t = 3600)]
    pub upload_url_ttl: u64,
    /// The deadline of a function call, in seconds.
    #[arg(long, env = "SVC_FUNCTION_TIMEOUT", default_value_t = 30)]
    pub function_timeout: u64,
}
