import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { TestEdge } from './test-edge.ts'
import type { MissingContentBlob } from '../../src/content/schemas.ts'
import { layoutMembers } from './layout-files.ts'
import { createLayout, type TestLayout } from './layouts.ts'
import { rawTar } from './tar-bytes.ts'
import { form, type Part } from './upload-server.ts'

export const contentUploadsPath = '/v1/edge-mgmt/content/uploads'
export const uploadContentPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'

/** No part of the disk of a test has to stay free. */
export const noReserve = { reserve: { percent: 0, leastBytes: 0 } }

export const digestOf = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** A layout with one image, named `registry.example/app:1`. */
export function imageLayout(
  layers: readonly string[] = ['layer'],
  name = 'registry.example/app:1',
): TestLayout {
  const layout = createLayout()
  layout.list(layout.image({ layers: [...layers] }), { 'org.opencontainers.image.ref.name': name })
  return layout
}

/** A layout as a tar archive. */
export const layoutTar = (layout: TestLayout): Buffer => rawTar(layoutMembers(layout))

/** As a socket delivers it. */
function inPieces(body: Buffer): Readable {
  const pieces = Array.from({ length: Math.ceil(body.length / 65_536) }, (_, each) =>
    body.subarray(each * 65_536, (each + 1) * 65_536),
  )
  return Readable.from(pieces, { objectMode: false })
}

/** The verbs of a client that uploads blob by blob, by `inject`. */
export function contentClient(edge: TestEdge, token: string) {
  const headers = { authorization: token }
  const inject = (method: 'POST' | 'GET' | 'DELETE', url: string) => edge.app.inject({ method, url, headers })
  const at = (uid: string) => `${contentUploadsPath}/${uid}`
  return {
    begin(index: Buffer, ...more: Part[]) {
      const { type, body } = form({ name: 'index', fileName: 'index.json', content: index }, ...more)
      return edge.app.inject({
        ...{ method: 'POST', url: contentUploadsPath, payload: inPieces(body) },
        headers: { ...headers, 'content-type': type, 'content-length': String(body.length) },
      })
    },
    async missing(uid: string): Promise<MissingContentBlob[]> {
      const { body, statusCode } = await inject('GET', `${at(uid)}/missing`)
      if (statusCode !== 200) throw new Error(body)
      return body
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as MissingContentBlob)
    },
    patch(uid: string, digest: string, content: Buffer, range?: string) {
      return edge.app.inject({
        ...{ method: 'PATCH', url: `${at(uid)}/blobs/${digest}`, payload: content },
        headers: {
          ...{ ...headers, 'content-type': 'application/octet-stream' },
          ...(range === undefined ? {} : { 'content-range': range }),
        },
      })
    },
    /** Sends the bytes from an offset to the end. */
    send(uid: string, content: Buffer, offset = 0, digest = digestOf(content)) {
      const range = `bytes ${offset}-${content.length - 1}/${content.length}`
      return this.patch(uid, digest, content.subarray(offset), range)
    },
    sendFile(content: Buffer, ...more: Part[]) {
      const { type, body } = form({ name: 'uploadFile', fileName: 'bundle.tar', content }, ...more)
      return edge.app.inject({
        ...{ method: 'POST', url: uploadContentPath, payload: body },
        headers: { ...headers, 'content-type': type },
      })
    },
    publish: (uid: string) => inject('POST', `${at(uid)}/actions/publish`),
    show: (uid: string) => inject('GET', at(uid)),
    list: (query = '') => inject('GET', `${contentUploadsPath}${query}`),
    remove: (uid: string) => inject('DELETE', at(uid)),
    /** Sends all that is missing and that the layout has. */
    async sendAll(uid: string, layout: TestLayout): Promise<number> {
      for (let sent = 0; ;) {
        const known = (await this.missing(uid)).filter(({ digest }) => layout.blobs.has(digest.slice(7)))
        if (known.length === 0) return sent
        for (const { digest, heldBytes } of known) {
          const reply = await this.send(uid, layout.blobs.get(digest.slice(7))!, heldBytes)
          if (reply.statusCode !== 204) throw new Error(`${digest}: ${reply.statusCode} ${reply.body}`)
          sent += 1
        }
      }
    },
    /** Uploads a layout, which has to be accepted. */
    async upload(layout: TestLayout) {
      const begun = (await this.begin(layout.indexFile())).json<{ uid: string }>()
      await this.sendAll(begun.uid, layout)
      return this.publish(begun.uid)
    },
  }
}

export type ContentClient = ReturnType<typeof contentClient>
