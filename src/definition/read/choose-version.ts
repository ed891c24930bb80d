/**
 * The version of a pack that a profile means. A tag such as `1.25.x` floats: the platform takes the newest version, and the export names it
 * beside the tag.
 * @param version empty where the export names none
 * @param present the versions of the folders of its name
 * @returns the tag, where no folder or several fit; it may be empty
 */
export function chooseVersion(tag: string, version: string, present: readonly string[]): string {
  if (present.includes(tag)) return tag
  const start = tag.endsWith('.x') ? tag.slice(0, -1) : ''
  if (tag !== '' && start === '') return tag
  if (version !== '' && (present.includes(version) || tag === '')) return version
  const [one, another] = present.filter((each) => each.startsWith(start))
  return one !== undefined && another === undefined ? one : tag
}
