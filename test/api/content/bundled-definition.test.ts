import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  annotations,
  artifactTypes,
  definitionMark,
  mediaTypes,
} from '../../../src/content/format/media-types.ts'
import type { ClusterConfigArchiveDetails, ClusterProfileDetail } from '../../../src/definition/schemas.ts'
import { noReserve } from '../../support/content-uploads.ts'
import { definitionArchive } from '../../support/definition-archives.ts'
import { layoutMembers } from '../../support/layout-files.ts'
import { createLayout } from '../../support/layouts.ts'
import { compressions, rawTar } from '../../support/tar-bytes.ts'
import { createTestEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'
import { form } from '../../support/upload-server.ts'
import { waitFor } from '../../support/wait-for.ts'

const uploadPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'
const bundlesPath = '/v1/edge-mgmt/content/bundles'
const archivePath = '/v1/edge-mgmt/clusters/archive'

let edge: TestEdge
let token: string
let running: readonly ClusterProfileDetail[] | undefined
const options = () => ({
  ...{ running: () => running },
  content: noReserve,
})
beforeEach(async () => {
  running = undefined
  edge = await createTestEdge(options())
  token = (await edge.login('alice')).access
})
afterEach(() => edge.stop())

/** A bundle with a definition, as `edgehostctl content build --definition` makes it, and an image. */
function bundleOf(definition: Buffer): Buffer {
  const layout = createLayout()
  const layers = [layout.put(definition, mediaTypes.definitionContent)]
  layout.list(layout.artifact({ artifactType: artifactTypes.definition, layers }), {
    [annotations.contentType]: definitionMark,
    [annotations.refName]: 'cluster-definition',
  })
  layout.list(layout.image(), { [annotations.imageName]: 'docker.io/library/one:1' })
  return compressions.zstd(rawTar(layoutMembers(layout)))
}

async function upload(content: Buffer, fileName = 'shop.tar.zst') {
  const { type, body } = form({ name: 'uploadFile', fileName, content })
  const headers = { authorization: token, 'content-type': type }
  return edge.app.inject({ method: 'POST', url: uploadPath, payload: body, headers })
}

async function publish(version: string, fileName?: string): Promise<string> {
  const reply = await upload(bundleOf(definitionArchive({ version })), fileName)
  expect(reply.statusCode, reply.body).toBe(201)
  return reply.json<{ uid: string }>().uid
}

const details = async (slot: string) =>
  (await edge.get(`${archivePath}/${slot}/details`, token)).json<ClusterConfigArchiveDetails>()
/** The versions in the slots embedded and update. */
const slots = async () => {
  const both = [await details('embedded'), await details('update')]
  return both.map(({ clusterProfileDetails: [profile] }) => profile?.profileVersion)
}
const remove = async (path: string) => {
  const headers = { authorization: token }
  return (await edge.app.inject({ method: 'DELETE', url: path, headers })).statusCode
}

async function restart() {
  const { stateDirectory, host } = edge
  await edge.daemon.stop()
  edge = await createTestEdge({ ...options(), host, stateDirectory })
  token = (await edge.login('alice')).access
}

describe('a bundle with a definition', () => {
  it('its definition is in the slot embedded with the 201, stays over a restart, and goes with the bundle', async () => {
    const uid = await publish('1.0.0')
    expect(await details('embedded')).toMatchObject({ fileName: 'shop', problems: [] })
    const newer = await publish('2.0.0')
    expect(await slots()).toEqual(['2.0.0', undefined])
    await restart()
    expect(await slots()).toEqual(['2.0.0', undefined])
    expect(await remove(`${bundlesPath}/${newer}`)).toBe(204)
    expect(await slots()).toEqual(['1.0.0', undefined])
    expect(await remove(`${bundlesPath}/${uid}`)).toBe(204)
    expect(await slots()).toEqual([undefined, undefined])
    expect(await readdir(join(edge.stateDirectory, 'definitions'))).toEqual(['staging'])
  })

  it('after a start of the whole daemon its archive is there as soon as readyz says so, in both slots', async () => {
    await publish('1.0.0')
    const first = await details('embedded')
    running = first.clusterProfileDetails
    await publish('2.0.0')
    await restart()
    // The upkeep of pins opens the content before any request does.
    await edge.daemon.start()
    await waitFor(async () => expect((await edge.get('/readyz')).statusCode).toBe(200))
    for (const slot of ['embedded', 'update']) {
      const { archiveUploadPath } = await details(slot)
      const { file } = await edge.definition.archiveOf(archiveUploadPath)
      expect((await stat(file)).isFile(), slot).toBe(true)
    }
    expect(await slots()).toEqual(['1.0.0', '2.0.0'])
    expect((await details('embedded')).uid).toBe(first.uid)
  })

  it('one with a bad definition is refused whole; bundle, blobs and slot are as before', async () => {
    const reply = await upload(bundleOf(definitionArchive({ values: 'a: [\n' })))
    expect(reply.statusCode).toBe(400)
    const { code, message, details: told } = reply.json<ErrorReply & { details: { problems: object[] } }>()
    expect(code).toBe('DefinitionInvalid')
    expect(message).toMatch(/^the definition in the bundle: /)
    expect(told.problems).toMatchObject([{ code: 'YamlInvalid' }])
    const content = join(edge.stateDirectory, 'content')
    for (const folder of ['bundles', 'blobs/sha256', 'uploads'])
      expect(await readdir(join(content, folder)), folder).toEqual([])
    expect(await slots()).toEqual([undefined, undefined])
    await publish('1.0.0')
    expect(await slots()).toEqual(['1.0.0', undefined])
  })

  it('while there is a cluster it is an update, which does not come back when it was discarded', async () => {
    await publish('1.0.0')
    running = (await details('embedded')).clusterProfileDetails
    const uid = await publish('2.0.0')
    expect(await slots()).toEqual(['1.0.0', '2.0.0'])
    expect(await remove(`${archivePath}/update`)).toBe(204)
    await restart()
    // The content is opened, and reports its bundles.
    const bundles = await edge.get(bundlesPath, token)
    expect(bundles.json<{ items: { uid: string }[] }>().items.map((each) => each.uid)).toContain(uid)
    expect(await slots()).toEqual(['1.0.0', undefined])
    await publish('3.0.0')
    expect(await slots()).toEqual(['1.0.0', '3.0.0'])
  })

  it('the same bundle again is a 200 and changes no slot', async () => {
    const bundle = bundleOf(definitionArchive())
    expect((await upload(bundle)).statusCode).toBe(201)
    const { uid } = await details('embedded')
    expect((await upload(bundle)).statusCode).toBe(200)
    expect((await details('embedded')).uid).toBe(uid)
  })
})
