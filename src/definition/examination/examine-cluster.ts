import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { withDefaults, type ArchiveLimits } from '../../archive/limits.ts'
import { isRecord } from '../../base/json.ts'
import { masked } from '../../base/mask.ts'
import { replaceFile } from '../../system/files.ts'
import { createDiskRoom } from '../../upload/disk-room.ts'
import { planBuild, type BuildPlan } from '../build/build-plan.ts'
import { buildArchive } from '../build/build.ts'
import { readPlanned } from '../build/check-plan.ts'
import type { Definition, Problem, Profile, GivenVariable } from '../definition.ts'
import { parseExport, displayNameKey, type ReadProfile } from '../read/read-profile.ts'
import { checkDefinition } from '../rules/check.ts'
import { hasInfrastructure } from '../rules/composition.ts'
import { renderDefinition } from '../rules/macros.ts'
import { createPatterns } from '../rules/pattern.ts'
import { readPlain } from '../rules/plain-values.ts'
import { folderKey, foldersByKey, textsOfPack } from '../rules/sources.ts'
import type { SystemFacts } from '../rules/system-macros.ts'
import { createVariableRules, type VariableRules } from '../rules/variables.ts'
import { createHideOf, secretsIn } from '../slots/secrets.ts'
import {
  kubernetesFile,
  resolvedPacks,
  type ClusterOrder,
  type ClusterProblem,
  type ExaminedCluster,
  type ExaminedKubernetes,
  type ProfileSource,
  largestDescription,
  deliveredDefinition,
  deliveryFrame,
} from './protocol.ts'

/**
 * A variable of an exported profile as it stands in a definition that lies on a disk: without the default and the options of a sensitive
 * one, which the host gets as its value. Fields that need a default are taken off too, so that the definition stays valid.
 */
function withoutSecrets(variable: unknown): unknown {
  const known = variable as Readonly<Record<string, unknown>>
  const { isSensitive, defaultValue, options, hidden, inputType } = known
  const hasOptions = Array.isArray(options) && options.length > 0
  if (isSensitive !== true || (!hasOptions && (defaultValue ?? '') === '')) return variable
  const left = new Set([
    ...['defaultValue', 'options', 'immutable'],
    ...(hidden === true ? ['required'] : []),
    ...(inputType === 'dropdown' ? ['inputType'] : []),
  ])
  return Object.fromEntries(Object.entries(known).filter(([name]) => !left.has(name)))
}

// Values that a host accepts in a description.
const mostValues = 4_096
// More than a person reads in one reply.
const mostProblems = 100

/**
 * Checks the profiles, packs and values of a cluster as its host will, with all problems at once, and builds the definition where there is
 * no error. The written files have no secret of a variable; the finding has.
 * @throws AppError of the disk; the system's errors as they are
 */
export async function examineCluster({ cluster: order }: ClusterOrder): Promise<ExaminedCluster> {
  const { folder, given, reserveBytes, wanted } = order
  const limits = withDefaults(order.limits)
  const sources = join(folder, 'sources')
  await mkdir(sources, { mode: 0o700 })
  try {
    const room = createDiskRoom({ folder, reserveBytes })
    const profiles: ReadProfile[] = []
    const files: string[] = []
    for (const source of order.profiles) {
      const { profile, text } = await readSource(source)
      profiles.push(profile)
      const file = join(sources, `${source.uid}.json`)
      await room.take(Buffer.byteLength(text))
      await writeFile(file, text, { mode: 0o600 })
      files.push(file)
    }
    const plan = planBuild({ profiles: files, packs: order.packs, limits })
    const found = await checkAll({ plan, profiles, given, facts: order.facts, limits })
    const isPossible = found.problems.every(({ severity }) => severity !== 'error')
    const shown = found.definition && showMasked(found.definition, order)
    const kubernetes = shown && kubernetesIn(shown)
    const seen = { problems: found.problems, ...(kubernetes ? { kubernetes } : {}) }
    if (wanted === undefined || !isPossible || !shown) return seen

    const values = valuesFor(found.rules, given)
    const headFor = (definitionSha256: string) => {
      const { configuration, ...rest } = wanted
      const spec = { ...configuration.spec, profileVariables: values }
      return JSON.stringify({
        ...rest,
        isDeleted: false,
        definitionSha256,
        configuration: { ...configuration, spec },
      })
    }
    const headBytes = Buffer.byteLength(headFor('0'.repeat(64)))
    if (headBytes > largestDescription || values.length > mostValues)
      return { problems: [...found.problems, tooLarge(headBytes, values.length)] }

    await room.take(plan.members.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0))
    const file = join(folder, deliveredDefinition)
    await buildArchive({ plan, file })
    const { size: sizeBytes } = await stat(file)
    const sha256 = (await hashed(createHash('sha256'), file)).digest('hex')
    const head = headFor(sha256)
    const { before, after } = deliveryFrame(Buffer.from(head), sizeBytes)
    const digest = (await hashed(createHash('sha256').update(before), file)).update(after).digest('hex')
    const write = async (name: string, value: object) => {
      const content = Buffer.from(JSON.stringify(value))
      await room.take(content.length)
      await replaceFile(join(folder, name), content, 0o600)
    }
    await write(resolvedPacks, showResolved(shown))
    if (kubernetes) await write(kubernetesFile, kubernetes)
    return { ...seen, built: { sha256, sizeBytes, head, digest } }
  } finally {
    await rm(sources, { recursive: true, force: true })
  }
}

/** A kept profile, and the text of it that may lie on a disk. */
async function readSource({ uid, metadata, file, packVersions, variables }: ProfileSource) {
  const head = JSON.stringify({ ...(JSON.parse(metadata) as object), uid })
  const tail = variables === undefined ? '' : `,"variables":${variables}`
  const content = `{"metadata":${head},${await readFile(file, 'utf8')}${tail}}}`
  const { profile, exported, problems } = parseExport({ place: `${uid}.json`, content })
  if (!profile || !exported)
    throw new Error(`the kept profile ${uid} cannot be read: ${problems[0]?.message ?? ''}`)
  const { spec } = exported
  // The host takes the version beside a tag, since several may be in the archive.
  const named = <Pack extends { tag?: unknown; version?: unknown }>(pack: Pack, at: number) => {
    const version = packVersions[at] ?? ''
    return version === '' || version === pack.tag ? pack : { ...pack, version }
  }
  const shown = {
    ...exported,
    spec: {
      ...spec,
      template: { ...spec.template, packs: spec.template.packs.map(named) },
      ...(spec.variables ? { variables: spec.variables.map(withoutSecrets) } : {}),
    },
  }
  return { profile, text: `${JSON.stringify(shown, null, 2)}\n` }
}

interface Checked {
  readonly problems: readonly ClusterProblem[]
  readonly definition?: Definition
  readonly rules: VariableRules
}

async function checkAll({
  plan,
  profiles,
  given,
  facts,
  limits,
}: {
  readonly plan: BuildPlan
  readonly profiles: readonly ReadProfile[]
  readonly given: readonly GivenVariable[]
  readonly facts: SystemFacts
  readonly limits: ArchiveLimits
}): Promise<Checked> {
  const patterns = createPatterns()
  const rules = createVariableRules(profiles, patterns)
  const hide = createHideOf([...secretsIn(profiles), ...sensitiveOf(rules, given)])
  const toShown = createPlaces(plan, profiles)
  const finish = (problems: readonly Problem[]) => {
    const shown = problems.map((problem) => toShown({ ...problem, message: hide(problem.message) }))
    const each = [...new Map(shown.map((one) => [`${one.code}\0${one.place}\0${one.message}`, one])).values()]
    const isError = ({ severity }: Problem) => severity === 'error'
    return [...each.filter(isError), ...each.filter((one) => !isError(one))].slice(0, mostProblems)
  }
  const ofValues = rules.validate(given).flatMap((verdict): ClusterProblem[] => {
    const { isValid, profileUid, validationFailureReason } = verdict
    const place = `profiles/${profileUid}/profile.json#spec.variables`
    const message = `variable ${validationFailureReason}`
    return isValid ? [] : [{ code: 'VariableInvalid', severity: 'error', place, message, profileUid }]
  })
  if (plan.problems.length > 0) return { rules, problems: finish([...plan.problems, ...ofValues]) }

  const read = await readPlanned({ plan, limits })
  if (!read.definition) return { rules, problems: finish([...read.problems, ...ofValues]) }
  const byUid = new Map(profiles.map((profile) => [profile.uid, profile]))
  // With its secrets, so that all is judged as the host will.
  const definition: Definition = {
    ...read.definition,
    profiles: read.definition.profiles.map((profile) => ({
      ...profile,
      variables: byUid.get(profile.uid)?.variables ?? profile.variables,
    })),
  }
  const variables = createVariableRules(definition.profiles, patterns)
  const rendered = renderDefinition(definition, { given, facts: factsOf(definition, facts), variables })
  const problems = [
    ...read.problems,
    ...checkDefinition(definition, { patterns }),
    ...ofInfrastructure(definition),
    ...ofValues,
    // A variable without a value is reported by its rule.
    ...rendered.problems.filter(({ code, severity }) => severity === 'error' && code !== 'MacroUnset'),
  ]
  return { rules: variables, definition, problems: finish(problems) }
}

const factsOf = ({ profiles }: Definition, facts: SystemFacts): SystemFacts => ({
  ...facts,
  kubernetesVersion: kubernetesOf(profiles)?.version ?? '',
})

function kubernetesOf(profiles: readonly Profile[]): { tag: string; version: string } | undefined {
  const pack = profiles.find(hasInfrastructure)?.packs.find(({ layer }) => layer === 'k8s')
  return pack && { tag: pack.tag, version: /^v?(\d+\.\d+\.\d+)/.exec(pack.tag)?.[1] ?? '' }
}

/** Without these layers no host accepts a cluster. */
function ofInfrastructure({ profiles }: Definition): Problem[] {
  const place = 'profiles'
  const kubernetes = kubernetesOf(profiles)
  if (!kubernetes) {
    const message = 'no profile has the layers os, k8s and cni; add one that has them'
    return [{ code: 'InfrastructureMissing', severity: 'error', place, message }]
  }
  if (kubernetes.version !== '') return []
  const message = `the pack of the layer k8s has the version "${kubernetes.tag}", which is no version of Kubernetes such as 1.34.4`
  return [{ code: 'KubernetesVersionInvalid', severity: 'error', place, message }]
}

/** The values of sensitive variables. */
function sensitiveOf({ declared }: VariableRules, given: readonly GivenVariable[]): string[] {
  const names = new Set(
    declared.flatMap(({ profile, rules }) =>
      [...rules.values()].flatMap(({ variable }) =>
        variable.isSensitive === true ? [`${profile.uid}\0${variable.name}`] : [],
      ),
    ),
  )
  return given.flatMap(({ profileUid = '', name, value }) =>
    names.has(`${profileUid}\0${name}`) ? [value] : [],
  )
}

/** Given values, and the defaults of sensitive variables, which the definition does not have. */
function valuesFor({ declared }: VariableRules, given: readonly GivenVariable[]): readonly GivenVariable[] {
  const known = new Set(given.map(({ profileUid = '', name }) => `${profileUid}\0${name}`))
  const defaults = declared.flatMap(({ profile, rules }) =>
    [...rules.values()].flatMap(({ variable: { name, isSensitive }, default: value }) =>
      isSensitive !== true || value === undefined || known.has(`${profile.uid}\0${name}`)
        ? []
        : [{ name, profileUid: profile.uid, value }],
    ),
  )
  return [...given, ...defaults]
}

const tooLarge = (bytes: number, values: number): ClusterProblem => ({
  code: 'TooLarge',
  severity: 'error',
  place: 'spec',
  message: `the cluster has ${values} values and ${bytes} bytes beside its definition; a host accepts ${mostValues} and ${largestDescription}`,
})

/** Turns the places of a plan, which are paths of this machine, into places of the definition, and finds the profile and the pack. */
function createPlaces({ members }: BuildPlan, profiles: readonly ReadProfile[]) {
  const names = new Map(members.map(({ place, name }) => [place, name]))
  return (problem: ClusterProblem): ClusterProblem => {
    const [, file = '', rest = ''] = /^([^#]*?)((?:#.*|:\d+:\d+)?)$/s.exec(problem.place) ?? []
    const ofSource = /\/sources\/([^/]+)\.json$/.exec(file)?.[1]
    const name = ofSource === undefined ? names.get(file) : `profiles/${ofSource}/profile.json`
    // Any other place is a folder of this machine.
    const place = name === undefined && file.startsWith('/') ? 'packs' : `${name ?? file}${rest}`
    const profileUid = problem.profileUid ?? /^profiles\/([^/]+)\//.exec(place)?.[1]
    const index = /#spec\.template\.packs\[(\d+)\]/.exec(rest)?.[1]
    const folder = /^packs\/([^/]+)\//.exec(place)?.[1]
    const packs = profiles.find(({ uid }) => uid === profileUid)?.packs ?? []
    const pack = index === undefined ? undefined : packs[Number(index)]?.name
    const inFolder = profiles
      .flatMap((each) => each.packs)
      .find((each) => folder?.startsWith(`${each.name}-`) === true)?.name
    const found = pack ?? inFolder
    return {
      ...problem,
      place,
      ...(profileUid === undefined ? {} : { profileUid }),
      ...(found === undefined ? {} : { pack: found }),
    }
  }
}

async function hashed(hash: ReturnType<typeof createHash>, file: string) {
  for await (const chunk of createReadStream(file, { highWaterMark: 262_144 })) hash.update(chunk as Buffer)
  return hash
}

/** A definition with the texts of its packs, in which a mask stands for each sensitive value, so that none can be in them, however macros write it. */
interface Shown {
  readonly definition: Definition
  /** By their places. */
  readonly contents: ReadonlyMap<string, string>
  readonly hide: (text: string) => string
}

function showMasked(definition: Definition, { given, facts }: ClusterOrder['cluster']): Shown {
  const rules = createVariableRules(definition.profiles, createPatterns())
  const shown = rules.declared.flatMap(({ profile, rules: own }) =>
    [...own.values()].flatMap(({ variable: { name, isSensitive } }) =>
      isSensitive === true ? [{ name, profileUid: profile.uid, value: masked }] : [],
    ),
  )
  const secret = new Set(shown.map(({ name, profileUid }) => `${profileUid}\0${name}`))
  const values = given.filter(({ name, profileUid = '' }) => !secret.has(`${profileUid}\0${name}`))
  const { texts } = renderDefinition(definition, {
    given: [...values, ...shown],
    facts: factsOf(definition, facts),
    variables: rules,
  })
  const hide = createHideOf([...secretsIn(definition.profiles), ...sensitiveOf(rules, given)])
  const contents = new Map(texts.map(({ place, content }) => [place, content]))
  return { definition, contents, hide }
}

// The settings of kubeadm in a pack take some hundred bytes.
const mostConfigBytes = 262_144

/** The Kubernetes pack as the host will read it. */
function kubernetesIn({ definition: { profiles, packs }, contents }: Shown): ExaminedKubernetes | undefined {
  const profile = profiles.find(hasInfrastructure)
  const index = profile?.packs.findIndex(({ layer }) => layer === 'k8s') ?? -1
  const pack = profile?.packs[index]
  const version = kubernetesOf(profiles)?.version ?? ''
  if (!profile || !pack || version === '') return undefined
  const { values } = textsOfPack(profile, index, foldersByKey(packs).get(folderKey(pack.name, pack.tag)))
  const [read] = readPlain((values && contents.get(values.place)) ?? '').documents
  const cluster = isRecord(read) ? read.cluster : undefined
  const given = isRecord(cluster) ? cluster.config : undefined
  const config = typeof given === 'string' ? readPlain(given).documents[0] : given
  if (Buffer.byteLength(JSON.stringify(config ?? {})) > mostConfigBytes) return undefined
  return { pack: pack.name, version, config: config ?? {} }
}

/** The packs with their values. */
function showResolved({ definition, contents, hide }: Shown): readonly object[] {
  const folders = foldersByKey(definition.packs)
  return definition.profiles.map((profile) => ({
    cloudType: 'edge-native',
    name: profile.name,
    profileVersion: profile.version,
    type: profile.type,
    uid: profile.uid,
    packs: profile.packs.map((pack, index) => {
      const folder = folders.get(folderKey(pack.name, pack.tag))
      const { values: ofValues, manifests } = textsOfPack(profile, index, folder)
      return {
        ...(pack.displayName === '' ? {} : { annotations: { [displayNameKey]: hide(pack.displayName) } }),
        layer: pack.layer || 'addon',
        manifests: manifests.map(({ place }) => ({
          kind: 'manifest',
          name: hide(place.split('/').at(-1) ?? ''),
        })),
        name: pack.name,
        tag: pack.tag,
        type: pack.type || 'spectro',
        version: pack.tag,
        values: hide((ofValues && contents.get(ofValues.place)) ?? ''),
      }
    }),
  }))
}
