// Payload's REST interface, and its local one, as code of the site calls it: POST /local/METHOD.
import { createServer } from 'node:http'
import { getPayload, handleEndpoints } from 'payload'
import config from './config.mjs'

const payload = await getPayload({ config })
const origin = `http://127.0.0.1:${process.env.PORT}`

const body = async (asked) => {
  const parts = []
  for await (const part of asked) parts.push(part)
  return Buffer.concat(parts)
}

const answer = async (asked) => {
  const said = await body(asked)
  const [, first, method] = asked.url.split('/')
  if (first === 'local') {
    const [name, ...path] = method.split('.').reverse()
    const on = path.reverse().reduce((found, part) => found[part], payload)
    return Response.json((await on[name](JSON.parse(said))) ?? null)
  }
  const told = { method: asked.method, headers: asked.headers }
  if (said.length) told.body = said
  return handleEndpoints({ config, request: new Request(origin + asked.url, told) })
}

createServer(async (asked, reply) => {
  try {
    const told = await answer(asked)
    reply.writeHead(told.status, { 'content-type': 'application/json' })
    reply.end(Buffer.from(await told.arrayBuffer()))
  } catch (error) {
    reply.writeHead(500)
    reply.end(String(error.stack))
  }
}).listen(Number(process.env.PORT), '127.0.0.1')
