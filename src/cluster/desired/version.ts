/** Whether a version of Kubernetes comes before another one: `1.33.13`, without `v`. */
export function isOlder(version: string, than: string): boolean {
  const [one, other] = [version, than].map((each) => each.split('.').map(Number))
  for (const [index, part] of (one ?? []).entries()) {
    const difference = part - (other?.[index] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}

/**
 * Why Kubernetes cannot go from a version to the desired one: kubeadm upgrades to a patch of the same minor version, or to the next minor
 * one, and never back (https://kubernetes.io/releases/version-skew-policy/). Pure.
 * @returns undefined where it can
 */
export function skewOf(from: string, to: string): string | undefined {
  if (isOlder(to, from))
    return `Kubernetes ${from} cannot become ${to}, which is older; take a definition with ${from} or a newer one`
  const [[major = 0, minor = 0], [toMajor, toMinor = 0]] = [from, to].map((each) =>
    each.split('.').map(Number),
  ) as [number[], number[]]
  if (major === toMajor && toMinor - minor <= 1) return undefined
  return `Kubernetes ${from} cannot become ${to} at once; take a definition with ${major}.${minor + 1} first, then the next minor version each time`
}

// kubeadm reads v1beta4 since this version.
const [oldestMajor, oldestMinor] = [1, 31]

/** Why a version of Kubernetes cannot be made at all; undefined where it can. Pure. */
export function unsupportedIn(version: string): string | undefined {
  const [, major, minor] = /^(\d+)\.(\d+)\.\d+/.exec(version) ?? []
  if (Number(major) === oldestMajor && Number(minor) >= oldestMinor) return undefined
  return `Kubernetes ${version} is not supported; take a pack of version ${oldestMajor}.${oldestMinor} or later`
}

/** Names of the packs that kubeadm can install. */
export const kubernetesPacks: readonly string[] = ['edge-k8s']

/** Why Kubernetes of a pack cannot be made. */
export const unknownPack = (pack: string, known: readonly string[] = kubernetesPacks): string =>
  `this host cannot make Kubernetes of the pack ${pack}; build the definition with the Kubernetes pack ${known.join(' or ')} instead, and upload it`
