import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { SlotName } from '../../../src/definition/slots/slot-names.ts'
import { definitionArchive } from '../../support/definition-archives.ts'
import type { Edgehostd } from './edgehostd.ts'
import { eventually } from './eventually.ts'
import type { Ask, Reply } from './http.ts'

export const uploadPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'
/** The folder of definitions on a host. */
export const definitionsFolder = '/var/lib/edgehostd/definitions'

/** The definitions of a host, as seen with a token. */
export interface Definitions {
  /** Uploads a file of the test machine by `curl -F`, followed by further parts. */
  upload(file: string, ask?: Ask): Promise<Reply>
  /** The same for a small archive of this version, which has to be accepted. */
  take(version: string): Promise<void>
  details(slot?: SlotName): Promise<Reply>
  /** Begins an upload whose bytes the test sends. */
  open(archive: Buffer): Promise<OpenUpload>
  /** Everything in the folder of definitions: kind, mode, owner and path below it, sorted. */
  stored(): Promise<string[]>
  /** Process ids of examinations. */
  examinations(): Promise<number[]>
  /** Expects that nothing of an upload is left except the definition in the slot. */
  expectNothingLeft(): Promise<void>
}

/** An upload by a slow client. */
export interface OpenUpload {
  /** Length of the whole body. */
  readonly length: number
  /** Sends the next bytes of the body, up to this one. */
  sendTo(position: number): Promise<void>
  /** The whole reply, from its status line on. */
  readonly reply: Promise<string>
  /** Ends the client without closing the connection properly. */
  abandon(): Promise<void>
}

/** @param token of the user who sends the requests */
export function definitionsOf(host: Edgehostd, token: string): Definitions {
  const definitions: Definitions = {
    upload: (file, { form = [], ...ask } = {}) =>
      host.http('POST', uploadPath, { token, form: [`uploadFile=@${file}`, ...form], ...ask }),
    async take(version) {
      const file = join(host.folder, `${version}.tgz`)
      await writeFile(file, definitionArchive({ version }))
      expect(await definitions.upload(file), version).toMatchObject({ status: 201 })
    },
    details: (slot = 'overridden') =>
      host.http('GET', `/v1/edge-mgmt/clusters/archive/${slot}/details`, { token }),
    open: (archive) => openUpload(host, token, archive),
    async stored() {
      const found = await host.output(['find', definitionsFolder, '-printf', '%y %m %U:%G ./%P\\n'])
      return found.trim().split('\n').sort()
    },
    async examinations() {
      const { stdout } = await host.run(['pgrep', '-f', 'examine\\.cjs'])
      return stdout.split('\n').filter(Boolean).map(Number)
    },
    async expectNothingLeft() {
      const { uid = '' } = (await definitions.details()).json as { uid?: string }
      const held = ['archive', 'details.json', 'profiles.json'].map((name) => `f 600 0:0 ./${uid}/${name}`)
      const expected = [
        'd 700 0:0 ./',
        ...(uid ? [`d 700 0:0 ./${uid}`, ...held] : []),
        'd 700 0:0 ./staging',
      ]
      await eventually(async () => {
        expect(await definitions.stored()).toEqual(expected.sort())
        expect(await definitions.examinations()).toEqual([])
      })
    },
  }
  return definitions
}

const boundary = 'edgehost-e2e-boundary'

/** By openssl, whose standard input is the connection: the caller decides what is sent, and when. */
async function openUpload(host: Edgehostd, token: string, archive: Buffer): Promise<OpenUpload> {
  const body = Buffer.concat([
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="uploadFile"; filename="slow.tgz"\r\n\r\n`,
    ),
    archive,
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ])
  const client = spawn(
    'nsenter',
    [
      ...['-t', String(host.clientNamespace()), '-n', 'setpriv', '--pdeathsig', 'KILL'],
      ...['openssl', 's_client', '-quiet', '-verify_return_error', '-CAfile', host.cacert],
      ...['-connect', '10.77.0.1:5080'],
    ],
    { stdio: ['pipe', 'pipe', 'ignore'], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } },
  )
  const ended = once(client, 'close')
  // The other end may have closed; the reply, or its absence, shows it.
  client.stdin.on('error', () => undefined)
  let received = ''
  client.stdout.setEncoding('latin1')
  client.stdout.on('data', (chunk: string) => (received += chunk))
  const write = (bytes: Buffer | string) =>
    new Promise<void>((resolve) => client.stdin.write(bytes, () => resolve()))
  await write(
    `POST ${uploadPath} HTTP/1.1\r\nHost: 10.77.0.1:5080\r\nAuthorization: ${token}\r\nConnection: close\r\n` +
      `Content-Type: multipart/form-data; boundary=${boundary}\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  let sent = 0
  return {
    length: body.length,
    async sendTo(position) {
      const from = sent
      sent = position
      await write(body.subarray(from, position))
    },
    reply: ended.then(() => received),
    async abandon() {
      client.kill('SIGKILL')
      await ended
    },
  }
}
