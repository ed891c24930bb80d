import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Reply } from './client.ts'
import { timesByCurl } from './curl.ts'
import { makeVariables } from './definition-rules.ts'
import { administrator, uploadDefinition } from './definition-upload.ts'
import { ratioFigure, type Figure, type Measure } from './figure.ts'
import { median, single, spread } from './numbers.ts'
import { logIn } from './rig.ts'
import { buildTextDefinition } from './text-definition.ts'
import { readCpuMs, readRssMiB } from './usage.ts'

const detailsPath = '/v1/edge-mgmt/clusters/archive/overridden/details'
const validatePath = '/v1/edge-mgmt/cluster/profiles/variables/validate'
const barePath = '/v1/edge-mgmt/edgehosts/current'
const variableCount = 1_000
const callsPerSlice = 10

/** A definition that is mostly text: what its check takes, and the calls that need it later. */
export const measureDefinitionDetails: Measure = async (rig): Promise<Figure[]> => {
  const { rounds, packCount, manifestBytes } = rig.isQuick
    ? { rounds: 3, packCount: 20, manifestBytes: 5_000_000 }
    : { rounds: 20, packCount: 200, manifestBytes: 50_000_000 }
  rig.say('definition-details: building a definition')
  const variables = makeVariables(variableCount)
  const file = await buildTextDefinition(rig.folder, { packCount, manifestBytes, variables })
  const daemon = await rig.startDaemon({ settings: administrator(rig.accounts.good) })
  const client = rig.client(daemon)
  const token = await logIn(client, rig.accounts.good)

  rig.say('definition-details: uploading it')
  const idleMiB = readRssMiB(daemon.pid)
  const cpuBefore = readChildrenCpuMs(daemon.pid)
  const uploaded = await uploadDefinition(daemon, { certificate: rig.certificate, token, file })
  const examineCpuMs = readChildrenCpuMs(daemon.pid) - cpuBefore
  rmSync(file)

  const first = succeed(await client.send('GET', detailsPath, { token }))
  const { archiveUploadPath } = JSON.parse(first.body.toString()) as { archiveUploadPath: string }
  const given = variables.map(({ name, defaultValue: value = '' }) => ({ name, profileUid: 'bench', value }))
  const validate = async (): Promise<number> => {
    const body = { archiveUploadPath, variables: given }
    const reply = succeed(await client.send('POST', validatePath, { token, body }))
    const judged = (JSON.parse(reply.body.toString()) as { variables: { isValid: boolean }[] }).variables
    const valid = judged.filter(({ isValid }) => isValid).length
    if (valid !== variableCount) throw new Error(`${valid} of ${variableCount} variables are valid`)
    return reply.durationMs
  }
  const firstValidationMs = await validate()

  const bare = await rig.startBare({ body: first.body })
  const { certificate } = rig
  const calls = callsPerSlice
  const details: number[] = []
  const constant: number[] = []
  const validations: number[] = []
  const sides = [
    async () => constant.push(median(await timesByCurl(bare, { path: barePath, certificate, calls }))),
    async () =>
      details.push(median(await timesByCurl(daemon, { path: detailsPath, certificate, token, calls }))),
  ]
  for (let round = 0; round < rounds; round += 1) {
    rig.say(`definition-details: round ${round + 1} of ${rounds}`)
    // Neither is always the one that comes second.
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await side()
    validations.push(await slice(validate))
  }
  client.close()
  await Promise.all([daemon.stop(), bare.stop()])
  rmSync(join(rig.folder, 'state', 'definitions'), { recursive: true })

  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
  const what = `${packCount} packs, ${megabytes(manifestBytes)} of manifests, ${variableCount} variables`
  return [
    {
      name: 'definition-details: GET details',
      value: spread(details),
      unit: 'ms',
      target: '≤ 20',
      note: `${what}; a reply of ${megabytes(first.body.length)}, by curl; the first call, by Node, ${first.durationMs.toFixed(1)} ms`,
    },
    ratioFigure('definition-details: GET details ÷ bare Fastify', details, constant, {
      note: `which replies the same bytes as a constant buffer; ${rounds} pairs, each the median of ${callsPerSlice}`,
    }),
    { name: 'definition-details: the same bytes of bare Fastify', value: spread(constant), unit: 'ms' },
    {
      name: 'definition-details: validation of 1,000 variables',
      value: spread(validations),
      unit: 'ms',
      target: '≤ 20',
      note: `the first call, which reads the definition, ${firstValidationMs.toFixed(1)} ms`,
    },
    {
      name: 'definition-details: upload, until the 201',
      value: single(uploaded.durationMs / 1_000),
      unit: 's',
      note: `${megabytes(uploaded.bytes)}; processor time of examine.cjs ${(examineCpuMs / 1_000).toFixed(1)} s`,
    },
    {
      name: 'definition-details: memory of examine.cjs, peak',
      value: single(uploaded.examineMiB),
      unit: 'MiB',
      note: 'beside that of the daemon; above MemoryHigh= of the unit the kernel slows down both',
    },
    {
      name: 'definition-details: memory of the daemon, peak of the upload',
      value: single(uploaded.daemonMiB),
      unit: 'MiB',
      note: `idle, after a login, ${idleMiB.toFixed(0)} MiB`,
    },
  ]
}

/** The median of some calls, one after the other. */
async function slice(call: () => Promise<number>): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < callsPerSlice; index += 1) times.push(await call())
  return median(times)
}

/** Processor time of the processes that this one has started and that have ended. */
const readChildrenCpuMs = (pid: number) => readCpuMs(pid, { children: true }) - readCpuMs(pid)

function succeed(reply: Reply): Reply {
  if (reply.status !== 200) throw new Error(`the answer is ${reply.status}: ${reply.body.toString()}`)
  return reply
}
