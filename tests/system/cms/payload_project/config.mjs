// A site in two languages: posts with drafts and a trash, products without, each with our hooks.
import { buildConfig } from 'payload'
import { sqliteAdapter } from '@payloadcms/db-sqlite'
import { changed, deleted } from './sitemapd.ts'

const open = () => true
const access = { create: open, delete: open, read: open, readVersions: open, update: open }
const hooks = { afterChange: [changed], afterDelete: [deleted] }
// After our hook was called, and within the transaction.
const fail = ({ result }) => {
  if (result.title === 'rolled back') throw Error('rolled back')
}
const posts = {
  slug: 'posts', access, hooks: { ...hooks, afterOperation: [fail] }, trash: true,
  versions: { drafts: { schedulePublish: true } },
  fields: [
    { name: 'title', type: 'text', localized: true },
    { name: 'slug', type: 'text', localized: true },
  ],
}
const products = { slug: 'products', access, hooks, fields: [{ name: 'slug', type: 'text' }] }

export default buildConfig({
  collections: [posts, products],
  db: sqliteAdapter({
    client: { url: process.env.DATABASE_URL }, push: true, transactionOptions: {},
  }),
  localization: { locales: ['en', 'de'], defaultLocale: 'en', fallback: true },
  secret: 'only-for-these-tests',
  telemetry: false,
})
