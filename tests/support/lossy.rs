//! A gateway between clients and the service that loses answers.

use std::{
    collections::HashSet,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// Forwards requests to the service at `url`. The first answer to each idempotency key is read, and
/// then its connection is cut: the change was made, and the client does not know it. Returns the
/// address of the gateway, which lives as long as the test program.
pub fn gateway(url: &str) -> String {
    let service = url.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(HashSet::new()));
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let (service, seen) = (service.clone(), Arc::clone(&seen));
            // A client that goes away is no failure of the gateway.
            thread::spawn(move || forward(connection, &service, &seen));
        }
    });
    address
}

/// Forwards one request, then closes the connection.
fn forward(client: TcpStream, service: &str, seen: &Mutex<HashSet<String>>) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut head, mut length, mut key) = (String::new(), 0, None);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        match name.to_lowercase().as_str() {
            "connection" => continue,
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "x-backend-request-id" => key = Some(value.trim().to_owned()),
            _ => {}
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;

    let mut upstream = TcpStream::connect(service)?;
    upstream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    upstream.write_all(&body)?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer)?;
    let is_first = key.is_some_and(|key| seen.lock().unwrap().insert(key));
    if !is_first {
        (&client).write_all(&answer)?;
    }
    client.shutdown(std::net::Shutdown::Both)
}
