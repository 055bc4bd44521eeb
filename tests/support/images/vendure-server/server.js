// Vendure as a shop's server, configured by its environment: one PostgreSQL database, no worker of its own.
const { bootstrap, dummyPaymentHandler, LanguageCode, PaymentMethodHandler } = require('@vendure/core');

const { env } = process;

// In the shape of every real gateway's handler: a shopper authorises, and only the Admin API settles.
const gateway = new PaymentMethodHandler({
  code: 'platform-gateway',
  description: [{ languageCode: LanguageCode.en, value: 'Platform gateway' }],
  args: {},
  createPayment: (ctx, order, amount, args, metadata) => ({
    amount,
    state: ctx.apiType === 'admin' ? 'Settled' : 'Authorized',
    transactionId: metadata.reference,
    metadata,
  }),
  settlePayment: () => ({ success: true }),
});

const config = {
  apiOptions: { port: Number(env.PORT || 3000), hostname: '0.0.0.0', adminApiPath: 'admin-api', shopApiPath: 'shop-api' },
  authOptions: {
    tokenMethod: ['bearer', 'cookie'],
    superadminCredentials: { identifier: env.SUPERADMIN_USERNAME, password: env.SUPERADMIN_PASSWORD },
    cookieOptions: { secret: env.COOKIE_SECRET },
    requireVerification: false,
  },
  dbConnectionOptions: {
    type: 'postgres',
    host: env.DB_HOST,
    port: Number(env.DB_PORT || 5432),
    username: env.DB_USERNAME,
    password: env.DB_PASSWORD,
    database: env.DB_NAME,
    synchronize: true,
  },
  paymentOptions: { paymentMethodHandlers: [dummyPaymentHandler, gateway] },
};

bootstrap(config).catch(error => {
  console.error(error);
  process.exit(1);
});
