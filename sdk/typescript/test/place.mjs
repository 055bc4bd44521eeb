// The service under test, from the environment: tests/clients.rs starts it.
const { env } = process;
export const place = {
  url: env.URL,
  lossy: env.LOSSY_URL,
  nobody: env.NOBODY_URL,
  applicationId: env.APP_ID,
  sellerToken: env.SELLER_TOKEN,
  sellingApp: env.SELLING_APP,
};
if (Object.values(place).some((value) => !value)) {
  throw new Error("run these tests with `cargo test --features failpoints --test it clients`");
}
