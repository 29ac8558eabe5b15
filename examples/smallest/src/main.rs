//! The smallest server: one kind, in memory, over TLS, without any feature of the library. `scripts/systems/smallest.sh` measures it.
//!
//! ```text
//! smallest CHAIN.pem KEY.pem TOKENS ADDRESS     # lines of TOKENS: token,user,uid,"group,group"
//! ```

use bareboat::prelude::*;

/// A note.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Note {
    spec: Spec,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Spec {
    /// What it says.
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [chain, key, tokens, address] = &arguments[..] else {
        return Err("usage: smallest CHAIN.pem KEY.pem TOKENS ADDRESS".into());
    };
    let read = std::fs::read_to_string;
    let notes = TypedKind::new("example.com", "notes", "Note")
        .version::<Note>("v1")
        .column("Text", ".spec.text")
        .build()?;
    let server = Server::builder()
        .kind(notes)
        .authenticator(StaticTokens::parse(&read(tokens)?)?)
        .authorizer(MastersOnly)
        .build()?;
    let tls = Tls::from_pem(&read(chain)?, &read(key)?, None)?;
    let address = server.listen(address.parse()?, Some(tls)).await?;
    println!("serving on https://{address}");
    Ok(bareboat::run_until_signal(&server).await?)
}
