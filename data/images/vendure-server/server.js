// Vendure as the server of a shop, configured by its environment, with one PostgreSQL database. The jobs of Vendure
// run in this process.
const { createHash, timingSafeEqual } = require('node:crypto');
const {
  bootstrap, DefaultJobQueuePlugin, DefaultSearchPlugin, JobQueueService, LanguageCode, PaymentMethodHandler,
  RandomBytesApiKeyStrategy,
} = require('@vendure/core');

const { env } = process;

// The platform takes the money and then records the payment through the Admin API. A shopper cannot do that.
const platform = new PaymentMethodHandler({
  code: 'platform-payment',
  description: [{ languageCode: LanguageCode.en, value: 'Payment through the platform' }],
  args: {},
  createPayment: (ctx, order, amount, args, metadata) => ctx.apiType === 'admin'
    ? { amount, state: 'Settled', transactionId: metadata.reference, metadata }
    : { amount, state: 'Declined', errorMessage: 'Only the platform records payments of this shop.' },
  settlePayment: () => ({ success: true }),
});

// Vendure checks an API key at each request. Its default, bcrypt, takes a quarter of a second of the processor each
// time, and protects passwords that can be guessed; a key is 32 random bytes.
const digest = key => createHash('sha256').update(key).digest('hex');
const hashingStrategy = {
  hash: async key => digest(key),
  check: async (key, hash) => hash.length === 64 && timingSafeEqual(Buffer.from(digest(key)), Buffer.from(hash)),
};

const config = {
  apiOptions: {
    port: Number(env.PORT || 3000),
    hostname: '0.0.0.0',
    adminApiPath: 'admin-api',
    shopApiPath: 'shop-api',
    // The Admin UI may have another origin, and its requests ask for cookies. Safe only as long as there are none.
    cors: { origin: true, credentials: true },
  },
  authOptions: {
    // No cookies: the instances of a platform share an origin.
    tokenMethod: ['bearer', 'api-key'],
    adminApiKeyStrategy: new RandomBytesApiKeyStrategy({ hashingStrategy }),
    superadminCredentials: { identifier: env.SUPERADMIN_USERNAME, password: env.SUPERADMIN_PASSWORD },
    requireVerification: false,
  },
  dbConnectionOptions: {
    type: 'postgres',
    host: env.DB_HOST,
    port: Number(env.DB_PORT || 5432),
    username: env.DB_USERNAME,
    password: env.DB_PASSWORD,
    database: env.DB_NAME,
    // Makes the tables at the first start, and adapts them at later ones.
    synchronize: true,
  },
  paymentOptions: { paymentMethodHandlers: [platform] },
  plugins: [
    DefaultJobQueuePlugin.init({ useDatabaseForBuffer: true }),
    DefaultSearchPlugin.init({ bufferUpdates: false, indexStockStatus: true }),
  ],
};

bootstrap(config)
  .then(app => app.get(JobQueueService).start())
  .catch(error => {
    console.error(error);
    process.exit(1);
  });
