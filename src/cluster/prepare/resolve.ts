import { printable } from '../../base/printable.ts'
import {
  type Definition,
  type Problem,
  createGivenTo,
  type GivenVariable,
} from '../../definition/definition.ts'
import { createVariableRules, valueOf, type VariableRules } from '../../definition/rules/variables.ts'
import { createPatterns } from '../../definition/rules/pattern.ts'
import type { PreflightProblem } from '../desired/preflight-codes.ts'
import type { PreparedVariable } from '../desired/prepared.ts'
import { isRecord } from '../../base/json.ts'
import { readPlain } from '../../definition/rules/plain-values.ts'
import { mappingAt, textOf, valueAt, type Mapping } from './workspace.ts'
import { hasInfrastructure } from '../../definition/rules/composition.ts'
import { findMacros, replaceMacros, type Macro } from '../../definition/rules/macro.ts'
import { derivedSecrets, renderDefinition, type RenderedText } from '../../definition/rules/macros.ts'
import { createHideOf, secretsIn } from '../../definition/slots/secrets.ts'
import { shownPack, type DesiredKubernetes } from '../desired/desired-state.ts'
import { packId, readClusterPacks, type ClusterPack } from './packs.ts'
import type { PrepareOrder } from './protocol.ts'

interface JudgedVariables {
  readonly rules: VariableRules
  readonly variables: readonly PreparedVariable[]
  readonly problems: readonly PreflightProblem[]
}

/** The values of all declared variables, and problems of the given ones. */
function judgeVariables(
  { profiles }: Pick<Definition, 'profiles'>,
  given: readonly GivenVariable[],
): JudgedVariables {
  const rules = createVariableRules(profiles, createPatterns())
  const problems = rules.validate(given).flatMap(({ isValid, validationFailureReason }, index) => {
    // The given ones come first, in their order.
    const path = index < given.length ? `spec.profileVariables[${index}]` : 'spec.profileVariables'
    if (given[index]?.name === '')
      return [{ ...invalid, path: `${path}.name`, message: `${path}.name is missing: name the variable` }]
    return isValid ? [] : [{ ...invalid, path, message: `variable ${validationFailureReason}` }]
  })
  const givenTo = createGivenTo(given)
  const variables = rules.declared.flatMap(({ profile, rules: own }) =>
    [...own.values()].map((rule): PreparedVariable => {
      const { name, isSensitive = false, required = false } = rule.variable
      const value = valueOf(rule, givenTo(profile, name))
      const missing = required && value === '' ? { missing: `variable ${printable(name)} is required` } : {}
      return { profileUid: profile.uid, name, value, isSensitive, ...missing }
    }),
  )
  return { rules, variables, problems }
}

const invalid = { code: 'VariableInvalid', severity: 'error' } as const

/**
 * Changes of the host in `stages` of the values of an infrastructure pack: absolute paths of files and folders, and sysctls as
 * `name=value`; sorted, each once. `stages` is the cloud configuration of the platform's hosts: stage → steps.
 */
export function stagesIn(values: Mapping): string[] {
  const found = new Set<string>()
  for (const stages of [
    values.stages,
    valueAt(values, 'cluster', 'stages'),
    valueAt(values, 'pack', 'stages'),
  ])
    for (const steps of Object.values(asMapping(stages))) {
      if (!Array.isArray(steps)) continue
      for (const step of steps as unknown[]) {
        for (const path of [...pathsIn(valueAt(step, 'files')), ...pathsIn(valueAt(step, 'directories'))])
          found.add(path)
        for (const [name, value] of Object.entries(mappingAt(step, 'sysctl')))
          found.add(`${name}=${textOf(value) ?? ''}`)
      }
    }
  return [...found].sort()
}

/** A mapping, or the text of one. */
function asMapping(value: unknown): Mapping {
  const plain = typeof value === 'string' ? readPlain(value).documents[0] : value
  return isRecord(plain) ? plain : {}
}

const pathsIn = (files: unknown): string[] =>
  Array.isArray(files) ? (files as unknown[]).flatMap((file) => textOf(valueAt(file, 'path')) ?? []) : []

/** A definition with all variables and macros resolved. */
export interface Resolved {
  readonly kubernetes: DesiredKubernetes
  /** In the order of the profiles. */
  readonly packs: readonly ClusterPack[]
  readonly variables: readonly PreparedVariable[]
  /** Results of macros on sensitive values. */
  readonly derived: readonly string[]
  /** Adds a problem. Values of sensitive variables in its message are masked. */
  readonly add: (problem: PreflightProblem) => void
  /** Masks values of sensitive variables in a text. */
  readonly hide: (text: string) => string
  /** All problems so far, each once. */
  readonly problems: () => readonly PreflightProblem[]
}

/** Resolves a definition for one cluster. */
export function resolveDefinition(
  definition: Definition,
  { uid, name, node, variables: given, kubernetes: kept }: PrepareOrder['request'],
): Resolved {
  const { rules, variables, problems: ofVariables } = judgeVariables(definition, given)
  const infrastructure = definition.profiles.find(hasInfrastructure)
  const kubernetesPack = infrastructure?.packs.find(({ layer }) => layer === 'k8s')
  const ownVersion = /^v?(\d+\.\d+\.\d+)/.exec(kubernetesPack?.tag ?? '')?.[1] ?? ''
  const version = kept?.version ?? ownVersion
  const facts = {
    clusterName: name,
    clusterUid: uid,
    clusterKubevip: node.endpoint,
    kubernetesVersion: version,
  }
  const edges = { given, facts, variables: rules }
  const derived = derivedSecrets(definition, edges)
  const { add, hide, problems } = collectProblems(definition, variables, derived)
  ofVariables.forEach(add)
  const rendered = renderDefinition(definition, edges)
  const idOf = packFinder(definition)
  for (const problem of rendered.problems)
    if (isReported(problem)) add(toPreflight(problem, idOf(problem.place)))
  const texts = ofVariables.length === 0 ? rendered.texts : rendered.texts.map(fillMissing)
  const packs = readClusterPacks(definition, texts)
  const kubernetes = packs.find(({ pack }) => pack === kubernetesPack)
  if (!kubernetes)
    add({
      code: 'InfrastructureMissing',
      severity: 'error',
      message: `definition ${definition.name} ${definition.version} has no profile with the layers os, k8s and cni; build it again with such a profile`,
    })
  else if (kept)
    add({
      code: 'KubernetesKept',
      severity: 'warning',
      pack: kubernetes.id,
      message: `Kubernetes ${version} stays as it is configured: the pack ${shownPack(kubernetes.id)} of this definition has ${ownVersion}, and its values are not applied; take a definition with Kubernetes ${version} to change them`,
    })
  else if (version === '')
    add({
      code: 'KubernetesVersionInvalid',
      severity: 'error',
      message: `pack ${shownPack(kubernetes.id)} has the version "${kubernetes.pack.tag}", which is no version of Kubernetes such as 1.34.4`,
      pack: kubernetes.id,
    })
  return {
    kubernetes: kept ?? {
      pack: kubernetes?.pack.name ?? '',
      version,
      config: configOf(kubernetes),
      stages: packs.flatMap(({ pack, values }) =>
        pack.layer === 'os' || pack.layer === 'k8s' ? stagesIn(values) : [],
      ),
    },
    packs,
    variables,
    derived,
    add,
    hide,
    problems,
  }
}

/** `cluster.config`, a text; written as a mapping, it becomes JSON. */
function configOf(pack: ClusterPack | undefined): string {
  const config = valueAt(pack?.values, 'cluster', 'config')
  if (config === undefined || config === null) return ''
  return textOf(config) ?? JSON.stringify(config)
}

/**
 * Stands for the value of a variable that is missing, so that the texts with it can be rendered and the variable is not reported
 * again by each of them. A character for private use, which no image has.
 */
export const missingMark = '\ue000'

function fillMissing(text: RenderedText): RenderedText {
  const isMissing = ({ references }: Macro) =>
    references.some(({ kind }) => kind === 'var' || kind === 'pack')
  const { content } = text
  const filled = replaceMacros(content, findMacros(content), (macro) =>
    isMissing(macro) ? missingMark : undefined,
  )
  return { ...text, content: filled }
}

/**
 * Errors, and warnings that depend on values; the details of the definition show all other warnings. A variable without a value is
 * reported by its name.
 */
const isReported = ({ code, severity }: Problem) =>
  (severity === 'error' && code !== 'MacroUnset') ||
  code === 'MacroTypeChanged' ||
  code === 'MacroFunctionFailed'

const toPreflight = (
  { code, severity, place, message }: Problem,
  pack: string | undefined,
): PreflightProblem => ({
  code: 'DefinitionProblem',
  severity,
  message: `${place}: ${message} (${code})`,
  ...(pack === undefined ? {} : { pack }),
})

/** Finds the pack to which a place in the definition belongs. */
function packFinder({ profiles, packs }: Definition) {
  return (place: string): string | undefined => {
    const folder = packs.find((each) => place.startsWith(`${each.place}/`))
    for (const profile of profiles) {
      const index = /^#spec\.template\.packs\[(\d+)\]/.exec(place.slice(profile.place.length))?.[1]
      const pack = place.startsWith(`${profile.place}#`)
        ? profile.packs[Number(index ?? NaN)]
        : profile.packs.find(({ name, tag }) => name === folder?.name && tag === folder.version)
      if (pack) return packId(profile, pack)
    }
    return undefined
  }
}

function collectProblems(
  { profiles }: Definition,
  variables: readonly PreparedVariable[],
  derived: readonly string[],
) {
  const found = new Map<string, PreflightProblem>()
  const values = new Map(variables.map(({ profileUid, name, value }) => [`${profileUid}\0${name}`, value]))
  const secrets = secretsIn(
    profiles.map((profile) => ({
      ...profile,
      variables: profile.variables.map((variable) => {
        const value = values.get(`${profile.uid}\0${variable.name}`)
        return value === undefined ? variable : { ...variable, defaultValue: value }
      }),
    })),
  )
  const hide = createHideOf([...secrets, ...derived])
  return {
    hide,
    add(problem: PreflightProblem) {
      const message = hide(problem.message)
      found.set([problem.code, problem.path, message].join('\0'), { ...problem, message })
    },
    problems: () => [...found.values()],
  }
}
