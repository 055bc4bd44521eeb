//! The records of domains, from name servers.

use actors::{
    ports::domain_records::DomainRecords,
    runtime::turns::{Tenant, Turns},
};
use async_trait::async_trait;
use hickory_resolver::{
    Resolver,
    config::{NameServerConfig, ResolverConfig},
    net::{NetError, runtime::TokioRuntimeProvider},
    proto::rr::RData,
};
use std::{net::SocketAddr, time::Duration};
use tokio::time::timeout;

/// How long name servers may take.
const WITHIN: Duration = Duration::from_secs(10);
/// How many texts of a name are read. Whoever has the name decides how many it has.
const MOST: usize = 100;

/// How many names are asked about at the same time. Whoever has a name decides how long the answer takes.
const AT_ONCE: usize = 16;

/// A client of name servers.
pub struct NameServers {
    /// `None`: those of the machine.
    server: Option<SocketAddr>,
    turns: Turns<Tenant>,
}

impl NameServers {
    pub fn new(server: Option<SocketAddr>) -> Self {
        NameServers { server, turns: Turns::halved(AT_ONCE) }
    }

    /// A client without a memory: a record that was missing a moment ago may be there now.
    fn client(&self) -> Result<Resolver<TokioRuntimeProvider>, NetError> {
        let mut builder = match self.server {
            None => Resolver::builder_tokio()?,
            Some(server) => {
                let mut named = NameServerConfig::udp_and_tcp(server.ip());
                for connection in &mut named.connections {
                    connection.port = server.port();
                }
                let config = ResolverConfig::from_parts(None, Vec::new(), vec![named]);
                Resolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
        };
        builder.options_mut().cache_size = 0;
        builder.build()
    }
}

#[async_trait]
impl DomainRecords for NameServers {
    async fn texts(&self, tenant: Tenant, name: &str) -> Result<Vec<String>, String> {
        let failed =
            |e: NetError| format!("the name servers do not say whether there is {name}: {e}");
        let _turn = self.turns.take(tenant).await.map_err(|e| e.to_string())?;
        let client = self.client().map_err(failed)?;
        // The dot at the end keeps the search domains of the machine out.
        let asked = client.txt_lookup(format!("{name}."));
        let late =
            || format!("the name servers did not answer within {} seconds", WITHIN.as_secs());
        let found = match timeout(WITHIN, asked).await.map_err(|_| late())? {
            Ok(found) => found,
            Err(e) if e.is_no_records_found() || e.is_nx_domain() => return Ok(Vec::new()),
            Err(e) => return Err(failed(e)),
        };
        let texts = found.answers().iter().filter_map(|record| match &record.data {
            // A text of more than 255 bytes comes in pieces.
            RData::TXT(text) => Some(text.txt_data.concat()),
            _ => None,
        });
        Ok(texts.take(MOST).map(|text| String::from_utf8_lossy(&text).into_owned()).collect())
    }
}
