// The service under test, from the environment: tests/clients.rs starts it.
const { URL: url, LOSSY_URL: lossy, NOBODY_URL: nobody, APP_ID: applicationId } = process.env;
if (!url || !lossy || !nobody || !applicationId) {
  throw new Error("run these tests with `cargo test --features failpoints --test it clients`");
}
export const place = { url, lossy, nobody, applicationId };
