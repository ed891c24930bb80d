import type { PreflightCodeName, PreflightProblem } from '../desired/preflight-codes.ts'
import { keyOf, nameOf, type InventoryEntry } from '../../kubernetes/inventory.ts'
import {
  type InstalledObject,
  namespacesBefore,
  type Place,
  type Grant,
  isInTime,
  placesOf,
  type InstalledPack,
} from './installed.ts'
import { areKindsKnown, builtInKind, isBuiltInGroup } from '../../kubernetes/built-in-kinds.ts'
import { builtInNamespaces, isDnsLabel, isDnsSubdomain } from '../../kubernetes/names.ts'
import { groupOf } from '../../kubernetes/paths.ts'
import { createPackReport } from './workspace.ts'

/** Problem of an object of a pack. */
interface Finding {
  readonly code: PreflightCodeName
  readonly severity: PreflightProblem['severity']
  /** Findings of a pack with the same cause become one. */
  readonly cause: string
  readonly message: string
}

interface TwiceOptions {
  /** Undefined for a kind that is not known. */
  readonly isNamespaced: (object: InstalledObject) => boolean | undefined
  readonly report: (place: Place, finding: Finding) => void
}

/**
 * Finds objects that are installed twice. helm refuses foreign objects; an apply replaces present ones.
 * @param places in the order in which they are installed
 */
function judgeTwice(places: readonly Place[], { isNamespaced, report }: TwiceOptions): void {
  const before = new Map<string, Pick<Place, 'object'> & Partial<Place>>(
    namespacesBefore.map((object) => [keyOf(entryOf(object, undefined)), { object }]),
  )
  for (const place of places) {
    const { object, installation, pack } = place
    // A hook is deleted and made anew.
    if (object.name === '' || object.from === 'hook') continue
    const namespace = isNamespaced(object) === true ? object.namespace || installation.namespace : undefined
    const entry = entryOf(object, namespace)
    const first = before.get(keyOf(entry))
    before.set(keyOf(entry), place)
    if (!first) continue
    const { release } = installation
    const whose = first.pack ? `the pack ${first.pack.id}` : 'Kubernetes'
    if (object.from === 'template') {
      const isAdopted = first.object.adopter === `${installation.namespace}/${release}`
      // Two charts with one release are a problem of their own.
      const isOfSameRelease =
        first.installation !== installation &&
        first.installation?.release === release &&
        first.installation.namespace === installation.namespace
      if (isAdopted || isOfSameRelease) continue
      const where =
        first.installation === installation
          ? `${nameOf(entry)} is twice in the chart of the release ${release}`
          : `${nameOf(entry)} of the release ${release} is made before by ${first.pack === pack ? 'the pack itself' : whose}`
      const advice =
        first.object.from === 'settings'
          ? 'turn it off in the values of the chart'
          : 'leave it out of one of them'
      report(place, {
        code: 'ObjectTwice',
        severity: 'error',
        cause: `${whose} ${release}`,
        message: `${where}, and helm takes over nothing that it did not make; ${advice}`,
      })
    } else if (object.from === 'manifest' && first.object.from !== 'settings') {
      if (!first.pack || first.pack === pack || first.object.sum === object.sum) continue
      report(place, {
        code: 'ObjectTwice',
        severity: 'warning',
        cause: whose,
        message: `${nameOf(entry)} is in ${whose} too, and replaces that one`,
      })
    }
  }
}

const entryOf = (
  { apiVersion, kind, name }: InstalledObject,
  namespace: string | undefined,
): InventoryEntry => ({
  apiVersion,
  kind,
  name,
  ...(namespace === undefined ? {} : { namespace }),
})

interface JudgeOptions {
  /** In the order of their installation. */
  readonly packs: readonly InstalledPack[]
  /** Minor version of Kubernetes 1. */
  readonly minor: number
  /** The pack enables APIs beyond the defaults of the API server. */
  readonly hasMoreApis: boolean
  /** Everything that the packs install is known. Otherwise an unknown part may make a kind or a namespace. */
  readonly isWhole: boolean
  readonly add: (problem: PreflightProblem) => void
}

/**
 * Judges the objects of all packs together: a certain refusal of the API server or helm is an error; an object that a program of the
 * cluster may make in time, as an operator its kinds, is a warning. Pure.
 */
export function judgeObjects({ packs, minor, hasMoreApis, isWhole, add }: JudgeOptions): void {
  const places = placesOf(packs)
  const kinds = places.flatMap((place) => place.object.defines.map((defined) => ({ place, defined })))
  const namespaces = places.filter(({ object }) => object.kind === 'Namespace')

  const isNamespaced = ({ apiVersion, kind }: InstalledObject): boolean | undefined =>
    builtInKind(apiVersion, kind, minor)?.isNamespaced ??
    kinds.find(({ defined }) => defined.apiVersion === apiVersion && defined.kind === kind)?.defined
      .isNamespaced

  /** Whether a program of the packs that come before, or together with a place, has the right to make a missing one. */
  function mayMake(grant: Grant, { pack, index, object }: Place): boolean {
    // helm wants to know all kinds of a chart before it makes any of its objects.
    const isLate = (each: Place) =>
      grant === 'kinds' && object.from === 'template' && each.pack === pack && each.index >= index
    return places.some(
      (each) => each.object.grants.includes(grant) && each.pack.order <= pack.order && !isLate(each),
    )
  }

  function judgeKind(place: Place): Finding | undefined {
    const { object, pack } = place
    const { apiVersion, kind, from } = object
    if (builtInKind(apiVersion, kind, minor)) return undefined
    const cause = `${apiVersion} ${kind}`
    const what = `${shown(place)} is of the kind ${kind} in ${apiVersion}`
    const making = kinds.filter(
      ({ defined }) => defined.apiVersion === apiVersion && (defined.kind ?? kind) === kind,
    )
    const isThere = making.some(({ place: maker }) => {
      if (maker.pack !== pack || from !== 'template') return isInTime(maker, place)
      // The definitions of the manifests come before the charts; within a chart only definitions in its folder crds.
      const isFirst = maker.object.from === 'manifest' || maker.object.from === 'crds'
      return isFirst || maker.index < place.index
    })
    if (isThere) return undefined
    if (making.length === 0 && isBuiltInGroup(groupOf(apiVersion)))
      return areKindsKnown(minor) && !hasMoreApis
        ? unknown('error', cause, `${what}, which Kubernetes 1.${minor} does not have`)
        : unknown('warning', cause, `${what}, which Kubernetes has only if it is enabled`)
    if (!isWhole) return undefined
    const [first] = making
    if (first?.place.pack === pack)
      return unknown(
        'error',
        cause,
        `${what}, which is defined too late; helm takes definitions from the folder crds of a chart, and from the manifests of the pack, before it installs a chart`,
      )
    const where = first
      ? `only the pack ${first.place.pack.id}, which comes later, defines`
      : 'no pack defines'
    return judgeMissing(unknown, cause, `${what}, which ${where}`, mayMake('kinds', place) && 'define')
  }

  function judgeNamespace(place: Place): Finding | undefined {
    const { object } = place
    const { namespace } = object
    if (namespace === '' || isNamespaced(object) !== true || builtInNamespaces.has(namespace))
      return undefined
    const what = `${shown(place)} is in the namespace ${JSON.stringify(namespace)}`
    if (!isDnsLabel(namespace)) return missing('error', namespace, `${what}; ${labelRule}`)
    const making = namespaces.filter((each) => each.object.name === namespace)
    if (!isWhole || making.some((maker) => isInTime(maker, place))) return undefined
    const [first] = making
    const where = first
      ? `only ${first.pack === place.pack ? 'its manifests make, which come after its charts' : `the pack ${first.pack.id} makes, which comes later`}`
      : 'no pack makes'
    return judgeMissing(missing, namespace, `${what}, which ${where}`, mayMake('namespaces', place) && 'make')
  }

  function judgeName({ object }: Place): Finding | undefined {
    const { apiVersion, kind, name, from } = object
    const group = groupOf(apiVersion)
    if (name === '')
      return from === 'template'
        ? misnamed(kind, `a chart has a ${kind} without metadata.name, which helm cannot install`)
        : undefined
    const refuse = (rule: string) =>
      misnamed(`${kind} ${name}`, `it has a ${kind} with the name ${JSON.stringify(name)}; ${rule}`)
    // Parts of a path, such as system:node.
    if (group === 'rbac.authorization.k8s.io' || group === 'certificates.k8s.io')
      return /[/%]/.test(name) || /^\.\.?$/.test(name) ? refuse('a name must not contain / or %') : undefined
    if (group === '' && (kind === 'Namespace' || kind === 'Service'))
      return isDnsLabel(name) ? undefined : refuse(labelRule)
    const hasOwnRules = kinds.some(
      ({ defined }) => defined.kind === undefined && defined.apiVersion === apiVersion,
    )
    return hasOwnRules || isDnsSubdomain(name) ? undefined : refuse(subdomainRule)
  }

  const found = new Map<string, Finding & { readonly pack: string; count: number }>()
  for (const place of places) {
    // A namespace of the settings is judged with them.
    if (place.object.from === 'settings') continue
    for (const judge of [judgeKind, judgeName, judgeNamespace]) {
      const finding = judge(place)
      if (finding) collect(place, finding)
    }
  }
  judgeTwice(places, { isNamespaced, report: collect })
  function collect({ pack }: Place, finding: Finding): void {
    const key = [pack.id, finding.code, finding.severity, finding.cause].join('\0')
    const known = found.get(key)
    if (known) known.count += 1
    else found.set(key, { ...finding, pack: pack.id, count: 1 })
  }
  for (const { code, severity, message, pack, count } of found.values())
    createPackReport(add, pack)(
      code,
      count > 1 ? `${message} (and ${count - 1} more ${count > 2 ? 'objects' : 'object'})` : message,
      severity,
    )
}

const labelRule =
  'a name has at most 63 lower-case letters, digits and hyphens, and begins and ends with a letter or digit'
const subdomainRule =
  'a name has at most 253 lower-case letters, digits, hyphens and dots, and begins and ends with a letter or digit'

const shown = ({ object: { kind, name, namespace } }: Place) =>
  nameOf({ kind, name, apiVersion: '', ...(namespace === '' ? {} : { namespace }) })

type Severity = Finding['severity']
const unknown = (severity: Severity, cause: string, message: string): Finding => ({
  code: 'KindUnknown',
  severity,
  cause,
  message,
})
const missing = (severity: Severity, cause: string, message: string): Finding => ({
  code: 'NamespaceMissing',
  severity,
  cause,
  message,
})
/** @param may action of a program of the packs on it later; false where none does */
const judgeMissing = (
  make: typeof unknown,
  cause: string,
  what: string,
  may: 'define' | 'make' | false,
): Finding =>
  may === false
    ? make('error', cause, what)
    : make('warning', cause, `${what}; it is waited for, since a program of the packs may ${may} it`)
const misnamed = (cause: string, message: string): Finding => ({
  code: 'ObjectNameInvalid',
  severity: 'error',
  cause,
  message,
})
