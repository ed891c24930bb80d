import { generateKeyPairSync } from 'node:crypto'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { loadConfig, parseCommandLine, checkReferencedFiles } from '../../src/edgehostd/declarations.ts'
import { ConfigInvalid } from '../../src/config/problem.ts'
import { makeMaterial } from '../support/https-server.ts'

let folder: string
let unseen: string[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-named-'))
  unseen = []
})
afterEach(() => rm(folder, { recursive: true }))

const at = (name: string) => join(folder, name)

/** Writes a configuration and says what is wrong with it, the folder's name taken out. */
async function problemsOf(yaml: string): Promise<string[]> {
  await writeFile(at('config.yaml'), yaml.replaceAll('@', folder))
  try {
    await loadConfig({
      commandLine: parseCommandLine([]),
      environment: {},
      defaultFile: at('config.yaml'),
      onUnseen: (file) => unseen.push(file),
    })
    return []
  } catch (error) {
    if (!(error instanceof ConfigInvalid)) throw error
    return error.message.replaceAll(`${folder}/`, '').split('\n')
  }
}

const tls = 'api:\n  tls:\n    certificateFile: @/own.crt\n    keyFile: @/own.key\n'
const writePair = (cert: string, key: string) =>
  Promise.all([writeFile(at('own.crt'), cert), writeFile(at('own.key'), key)])

it('a pair, a key and a token that can be used are no problem', async () => {
  const { cert, key } = await makeMaterial()
  await writePair(cert, key)
  await writeFile(at('token'), 'x'.repeat(32), { mode: 0o600 })
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const pem = Buffer.from(publicKey.export({ type: 'spki', format: 'pem' })).toString('base64')
  const signing = `content: {signing: {publicKey: {base64EncodedValue: ${pem}}}}\n`
  expect(await problemsOf(`${tls}${signing}metrics:\n  tokenFile: @/token\n`)).toEqual([])
})

it('a registry without a password beyond loopback is a problem', async () => {
  const problems = (address: string) =>
    problemsOf(`content:\n  registry:\n    address: ${JSON.stringify(address)}\n    anonymous: true\n`)
  for (const loopback of ['127.0.0.1', '127.1.2.3', '::1']) expect(await problems(loopback)).toEqual([])
  for (const address of ['0.0.0.0', '::', '192.0.2.7'])
    expect(await problems(address)).toEqual([
      `config.yaml:4: content.registry.anonymous is true, but content.registry.address is ${address}: without a password the registry listens on loopback only; set content.registry.anonymous to false, or the address to 127.0.0.1`,
    ])
})

it('all problems are reported at once, with file and line, together with those of the configuration', async () => {
  const all = `${tls}content:\n  signing:\n    publicKey:\n      base64EncodedValue: AAAA\nmetrics: {tokenFile: @/token}\nlog: {level: loud}\n`
  expect(await problemsOf(all)).toEqual([
    expect.stringMatching(/^config.yaml:\d+:\d+: log.level is "loud"/),
    expect.stringMatching(/^config.yaml:3\b.*own.crt: ENOENT/),
    expect.stringMatching(/^config.yaml:4\b.*own.key: ENOENT/),
    expect.stringMatching(/^config.yaml:8\b.*content.signing.publicKey: .*openssl/),
    expect.stringMatching(/^config.yaml:9\b.*token cannot be read: ENOENT/),
  ])
})

it('a key of another certificate, and one that asks for a passphrase, are reported', async () => {
  const [one, other] = [await makeMaterial(), await makeMaterial()]
  await writePair(one.cert, other.key)
  expect(await problemsOf(tls)).toEqual([
    expect.stringMatching(/^config.yaml:3\b.*own.crt: its first certificate does not belong to the key/),
  ])
  const { privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'prime256v1',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'secret' },
  })
  await writePair(one.cert, privateKey)
  expect(await problemsOf(tls)).toEqual([
    expect.stringMatching(/^config.yaml:4\b.*own.key: .*the key must have no passphrase/),
  ])
})

it('a token is not required where there are no metrics', async () => {
  expect(await problemsOf('metrics: {enabled: false, tokenFile: @/token}\n')).toEqual([])
})

it.skipIf(process.getuid?.() !== 0)(
  'a file that only root may read is not checked for other users',
  async () => {
    const { cert, key } = await makeMaterial()
    await writePair(cert, key)
    await chmod(at('own.key'), 0o600)
    await chmod(folder, 0o755)
    process.seteuid?.('nobody')
    try {
      expect(
        await checkReferencedFiles({
          stateDirectory: folder,
          value: (path) =>
            new Map([
              ['api.tls.certificateFile', at('own.crt')],
              ['api.tls.keyFile', at('own.key')],
            ]).get(path),
          onUnseen: (file) => unseen.push(file),
        }),
      ).toEqual([])
      expect(unseen).toEqual([at('own.key')])
    } finally {
      process.seteuid?.(0)
    }
  },
)

it('a mount that the content requires and that is missing is a problem, in the folder of the state too', async () => {
  const state = 'state: {directory: @/state}\n'
  const problem = /^config.yaml:1\b.*content.requireMount: no file system is mounted at (\S+); see findmnt/
  const folderOf = async (yaml: string) =>
    (await problemsOf(yaml)).map((text) => problem.exec(text)?.[1] ?? text)
  expect(await folderOf(`content: {requireMount: true}\n${state}`)).toEqual(['state/content'])
  expect(await folderOf(`content: {requireMount: true, directory: @/disk}\n${state}`)).toEqual(['disk'])
  expect(await folderOf('content: {requireMount: true}\n')).toEqual(['/var/lib/edgehostd/content'])
  expect(await folderOf(`content: {requireMount: false}\n${state}`)).toEqual([])
  expect(await folderOf('content: {requireMount: true, directory: /proc}\n')).toEqual([])
})

it('a folder of the content that has an image layout of another program is a problem, also where it is the default one', async () => {
  const problem =
    /^(\S+): the folder of the content, (\S+), has (.*), but no record of a bundle: .* cd \S+ && mkdir layout/
  const found = async (yaml: string) =>
    (await problemsOf(`${yaml}state: {directory: @/state}\n`)).map(
      (text) => problem.exec(text)?.slice(1) ?? text,
    )
  for (const place of ['disk', 'state/content']) await mkdir(at(`${place}/blobs/sha256`), { recursive: true })
  const own = 'content: {directory: @/disk}\n'
  expect(await found(own)).toEqual([])
  expect(await found('')).toEqual([])
  for (const place of ['disk', 'state/content'])
    await writeFile(at(`${place}/index.json`), '{"schemaVersion":2,"manifests":[]}')
  expect(await found(own)).toEqual([['config.yaml:1', 'disk', 'index.json, blobs']])
  expect(await found('')).toEqual([['content.directory', 'state/content', 'index.json, blobs']])
})

it('content in a folder of the state that edgehostd empties is a problem, and beside it is none', async () => {
  const problems = (directory: string) =>
    problemsOf(`state: {directory: @/state}\ncontent: {directory: "${directory}"}\n`)
  for (const directory of ['@/state/content', '@/state/disk', '@/disk'])
    expect(await problems(directory), directory).toEqual([])
  for (const directory of ['@/state', '@/state/definitions', '@/state/cluster/x', '@/state/./tls/'])
    expect(await problems(directory), directory).toEqual([
      expect.stringContaining('where edgehostd makes and removes files of its own; name another folder'),
    ])
})
