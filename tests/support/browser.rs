//! Chromium without a window, driven through `chromedriver`. Parts of a page are found as people and
//! screen readers find them: by role and accessible name.

use super::requires;
use serde_json::json;
use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};
use thirtyfour::{
    By, ChromeCapabilities, ChromiumLikeCapabilities, Key, RequestData, SessionId, TypingData,
    WebDriver, WebElement, common::command::FormatRequestData, error::WebDriverResult,
};
use tokio::runtime::{Builder, Runtime};

pub struct Browser {
    /// `None` when the browser is being closed.
    driver: Option<WebDriver>,
    runtime: Runtime,
    chromedriver: Child,
    /// Open for as long as chromedriver may write to it.
    _output: BufReader<ChildStdout>,
}

/// Elements that may have a role.
const PARTS: &str =
    "a, button, h1, h2, h3, input:not([type=hidden]), select, summary, textarea, [role]";

/// The widths of a phone and of a computer, in CSS pixels.
const WIDTHS: [u32; 2] = [390, 1280];

/// `Get Computed Role` or `Get Computed Label` of WebDriver, by the last part of the path.
#[derive(Debug)]
struct Computed<'a>(&'a WebElement, &'static str);

impl FormatRequestData for Computed<'_> {
    fn format_request(&self, session: &SessionId) -> RequestData {
        let (element, what) = (self.0.element_id(), self.1);
        let path = format!("session/{session}/element/{element}/{what}");
        RequestData::new(reqwest::Method::GET, path)
    }
}

/// How long a page may take to show what is expected.
const WITHIN: Duration = Duration::from_secs(60);

/// Whether an element has this role and name.
async fn fits(element: &WebElement, role: &str, name: &str) -> WebDriverResult<bool> {
    let computed = async |what| -> WebDriverResult<String> {
        element.handle().cmd(Computed(element, what)).await?.value()
    };
    Ok(computed("computedrole").await? == role && computed("computedlabel").await? == name)
}

impl Browser {
    /// A new browser, without cookies. `None` where a program that it needs is missing.
    pub fn start(test: &str) -> Option<Browser> {
        if !requires::programs(test, &["chromium", "chromedriver"]) {
            return None;
        }
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut chromedriver = command.spawn().unwrap();
        let mut output = BufReader::new(chromedriver.stdout.take().unwrap());
        let port = output.by_ref().lines().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("started successfully on port ")?;
            Some(rest.trim_end_matches('.').to_owned())
        });
        let mut wanted = ChromeCapabilities::new();
        wanted.set_headless().unwrap();
        // Chromium refuses root with its sandbox, and containers have a small /dev/shm.
        wanted.set_no_sandbox().unwrap();
        wanted.set_disable_dev_shm_usage().unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let address = format!("http://127.0.0.1:{}", port.unwrap());
        let driver = runtime.block_on(WebDriver::new(address, wanted)).unwrap();
        let browser = Browser { driver: Some(driver), runtime, chromedriver, _output: output };
        browser.set_size(WIDTHS[1], 900);
        Some(browser)
    }

    fn driver(&self) -> &WebDriver {
        self.driver.as_ref().unwrap()
    }

    /// Goes to an address, and waits until its page is loaded.
    pub fn open(&self, url: &str) {
        self.runtime.block_on(self.driver().goto(url)).unwrap();
    }

    pub fn url(&self) -> String {
        self.runtime.block_on(self.driver().current_url()).unwrap().into()
    }

    /// What the page says.
    pub fn text(&self) -> String {
        let text = async { self.driver().find(By::Tag("body")).await?.text().await };
        // The page may just be replaced by the next one.
        self.runtime.block_on(text).unwrap_or_default()
    }

    /// Waits until the page says this.
    pub fn says(&self, words: &str) {
        let begun = Instant::now();
        while !self.text().contains(words) {
            let (url, text) = (self.url(), self.text());
            assert!(begun.elapsed() < WITHIN, "{url} does not say {words:?}: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the page has a part with this role and name.
    pub fn find(&self, role: &str, name: &str) -> WebElement {
        let look = async || -> WebDriverResult<Option<WebElement>> {
            for element in self.driver().find_all(By::Css(PARTS)).await? {
                if fits(&element, role, name).await? {
                    return Ok(Some(element));
                }
            }
            Ok(None)
        };
        let begun = Instant::now();
        loop {
            // An element of the page before is gone.
            if let Ok(Some(found)) = self.runtime.block_on(look()) {
                return found;
            }
            let (url, text) = (self.url(), self.text());
            assert!(begun.elapsed() < WITHIN, "{url} has no {role} {name:?}: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn click(&self, role: &str, name: &str) {
        let element = self.find(role, name);
        self.runtime.block_on(element.click()).unwrap();
    }

    /// Replaces what is in a field.
    pub fn fill(&self, role: &str, name: &str, text: &str) {
        let field = self.find(role, name);
        let filled = async {
            field.clear().await?;
            field.send_keys(text).await
        };
        self.runtime.block_on(filled).unwrap();
    }

    /// Chooses an option of a list.
    pub fn choose(&self, name: &str, option: &str) {
        let list = self.find("combobox", name);
        let option = format!("./option[normalize-space() = '{option}']");
        let chosen = async { list.find(By::XPath(option)).await?.click().await };
        self.runtime.block_on(chosen).unwrap();
    }

    /// Presses keys.
    pub fn keys(&self, keys: impl Into<TypingData>) {
        let typed = async { self.driver().active_element().await?.send_keys(keys).await };
        self.runtime.block_on(typed).unwrap();
    }

    /// Presses the Tab key until this part has the focus.
    pub fn tab_to(&self, role: &str, name: &str) {
        let reached = (0..100).any(|_| {
            self.keys(Key::Tab);
            let fits = async { fits(&self.driver().active_element().await?, role, name).await };
            self.runtime.block_on(fits).unwrap()
        });
        assert!(reached, "no key leads to the {role} {name:?}");
    }

    fn set_size(&self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let cdp = self.driver().cdp();
        let set = cdp.send_raw("Emulation.setDeviceMetricsOverride", size);
        self.runtime.block_on(set).unwrap();
    }

    /// Asserts that the page fits phones and computers without scrolling sideways. Leaves a picture
    /// for each of them in `target/tmp`.
    pub fn check_layout(&self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        for width in WIDTHS {
            self.set_size(width, 900);
            let root = "const root = document.documentElement;";
            let measure = format!("{root} return [root.scrollWidth, root.scrollHeight];");
            let measured = self.runtime.block_on(self.driver().execute(measure, vec![])).unwrap();
            let [wide, high]: [u32; 2] = measured.convert().unwrap();
            assert!(wide <= width, "{name} is {wide} wide on a screen of {width}");
            self.set_size(width, high);
            let picture = folder.join(format!("{name}-{width}.png"));
            self.runtime.block_on(self.driver().screenshot(&picture)).unwrap();
        }
        self.set_size(WIDTHS[1], 900);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.take() {
            let _ = self.runtime.block_on(driver.quit());
        }
        let _ = self.chromedriver.kill();
        let _ = self.chromedriver.wait();
    }
}
