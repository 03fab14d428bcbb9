// Writes the pages of a file of lines "loc<TAB>lastmod" as gzipped sitemaps and their index, each
// flushed and renamed into place, and prints the cost. Reading the pages is not part of it.
import { createWriteStream, fsyncSync, openSync, readFileSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { Readable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

const [project, source, target, base, limit] = process.argv.slice(2)
const { SitemapAndIndexStream, SitemapStream } = createRequire(`${project}/`)('sitemap')

const pages = readFileSync(source, 'utf8').trimEnd().split('\n').map((line) => {
  const [url, lastmod] = line.split('\t')
  return { url, lastmod }
})
const placed = []

function durable(name) {
  const file = createWriteStream(`${target}/${name}.temp`, { flush: true })
  placed.push(finished(file).then(() => rename(file.path, `${target}/${name}`)))
  return file
}

const began = performance.now()
const before = process.cpuUsage()
const all = new SitemapAndIndexStream({
  limit: Number(limit),
  getSitemapStream(number) {
    const name = `pages-${number + 1}.xml.gz`
    const sitemap = new SitemapStream({
      xmlns: { news: false, xhtml: false, image: false, video: false },
    })
    const file = sitemap.pipe(createGzip()).pipe(durable(name))
    return [{ url: `${base}/${name}`, lastmod: new Date().toISOString() }, sitemap, file]
  },
})
await pipeline(Readable.from(pages), all, durable('sitemap.xml'))
await Promise.all(placed)
fsyncSync(openSync(target))
const { user, system } = process.cpuUsage(before)
console.log(JSON.stringify({
  seconds: (performance.now() - began) / 1e3,
  cpu: (user + system) / 1e6,
}))
