/** Whether a version of Kubernetes comes before another one: `1.33.13`, without `v`. */
export function isOlder(version: string, than: string): boolean {
  const [one, other] = [version, than].map((each) => each.split('.').map(Number))
  for (const [index, part] of (one ?? []).entries()) {
    const difference = part - (other?.[index] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}
