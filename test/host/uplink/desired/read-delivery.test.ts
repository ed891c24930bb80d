import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { largestDescription } from '../../../../src/definition/examination/protocol.ts'
import { encryptFrom } from '../../../../src/secrets/encrypted-file.ts'
import { DeliveryRefused, readDelivery } from '../../../../src/uplink/desired/read-delivery.ts'
import { clusterUid, deliveryOf, tenantUid, type DeliveryWish } from '../../../support/played-download.ts'
import type { RawMember } from '../../../support/tar-bytes.ts'

function read(wish: DeliveryWish | Buffer) {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-delivery-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [path, key] = [join(folder, 'archive'), Buffer.alloc(32, 7)]
  writeFileSync(path, encryptFrom(key, 0)(Buffer.isBuffer(wish) ? wish : deliveryOf(wish).bytes))
  return readDelivery({ path, key }, 1_000_000)
}

const definition: RawMember = { name: 'definition.tar.zst', content: 'archive' }
const head = (more: object = {}): RawMember => ({
  name: 'cluster.json',
  content: JSON.stringify({
    ...{ number: 1, cluster: { uid: clusterUid, name: 'edge-1' }, tenantUid, isDeleted: false },
    ...{ definitionSha256: 'a'.repeat(64), configuration: {}, ...more },
  }),
})

describe('a delivery', () => {
  it('is the configuration and the archive of the definition', async () => {
    const found = await read({
      number: 3,
      configuration: { metadata: { name: 'edge-1' } },
      definition: Buffer.from('xyz'),
    })
    expect(found).toMatchObject({ number: 3, uid: clusterUid, name: 'edge-1', tenantUid, isDeleted: false })
    if (found.isDeleted) throw new Error('it is deleted')
    expect(found.configuration).toEqual({ metadata: { name: 'edge-1' } })
    expect(found.definition).toMatchObject({ sizeBytes: 3, fileName: 'definition.tar.zst' })
    expect((await buffer(found.definition.open())).toString()).toBe('xyz')
  })

  it('of a deletion has no definition', async () => {
    expect(await read({ isDeleted: true, number: 4 })).toEqual({
      ...{ number: 4, uid: clusterUid, name: 'edge-1', tenantUid, isDeleted: true },
    })
  })

  it.each<[string, readonly RawMember[]]>([
    ['a link as head', [{ name: 'cluster.json', kind: '2', linkName: '/etc/shadow' }, definition]],
    ['a link as definition', [head(), { name: 'definition.tgz', kind: '2', linkName: '/etc/shadow' }]],
    ['a hard link', [head(), { name: 'definition.tgz', kind: '1', linkName: 'cluster.json' }]],
    ['another name', [{ ...head(), name: 'other.json' }, definition]],
    ['a name with a folder', [head(), { ...definition, name: '../definition.tgz' }]],
    ['another order', [definition, head()]],
    ['a third member', [head(), definition, { name: 'more', content: 'x' }]],
    ['the same member twice', [head(), head()]],
    ['no definition', [head()]],
    ['an empty definition', [head(), { ...definition, content: '' }]],
    ['a definition with a deletion', [head({ isDeleted: true }), definition]],
    ['a head that is no JSON', [{ name: 'cluster.json', content: '{' }, definition]],
    [
      'a head that nests too deep to be parsed',
      [
        {
          name: 'cluster.json',
          content: (head().content as string).replace(
            '"configuration":{}',
            `"configuration":${'['.repeat(100_000)}${']'.repeat(100_000)}`,
          ),
        },
        definition,
      ],
    ],
    ['a head that is a list', [{ name: 'cluster.json', content: '[]' }, definition]],
    ['a uid that is a path', [head({ cluster: { uid: '../../etc', name: 'edge-1' } }), definition]],
    ['a name with an escape', [head({ cluster: { uid: clusterUid, name: '\u001b[2J' } }), definition]],
    ['no number', [head({ number: '1' }), definition]],
    ['no sum', [head({ definitionSha256: 'x' }), definition]],
    ['a folder', [head(), { name: 'definition.tgz', kind: '5' }]],
    ['a size beyond its end', [head(), { ...definition, size: 500_000 }]],
  ])('with %s is refused', async (_, members) => {
    await expect(read({ members })).rejects.toThrow(DeliveryRefused)
  })

  it('with more values in its head than there is memory for is refused before it is parsed', async () => {
    // Each is parsed to some 300 bytes.
    const configuration = `[${'{"30":0},'.repeat(600_000)}0]`
    const { content } = head()
    const large = (content as string).replace('"configuration":{}', `"configuration":${configuration}`)
    const before = process.memoryUsage().heapTotal
    await expect(read({ members: [{ name: 'cluster.json', content: large }, definition] })).rejects.toThrow(
      'has no JSON',
    )
    expect(process.memoryUsage().heapTotal - before).toBeLessThan(100_000_000)
  })

  it('with a larger head than a platform makes is refused before it is read', async () => {
    const members = [{ name: 'cluster.json', content: ' '.repeat(largestDescription + 1) }, definition]
    await expect(read({ members })).rejects.toThrow('are allowed')
  })

  it.each([Buffer.alloc(0), Buffer.alloc(2_048), Buffer.from('<html>'.repeat(200))])(
    'that is no tar is refused (%#)',
    async (bytes) => {
      await expect(read(bytes)).rejects.toThrow(DeliveryRefused)
    },
  )
})
