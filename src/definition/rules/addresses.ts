// Written out, since node:net may not be imported by what the command line uses, and all that is needed is yes or no.
const octet = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const ipv4 = new RegExp(`^${octet}(?:\\.${octet}){3}$`)
const group = /^[0-9A-Fa-f]{1,4}$/

/** Four decimal octets. Leading zeros are refused, since some readers take them for octal (RFC 6943, section 3.1.1). */
export function isIpv4(text: string): boolean {
  return ipv4.test(text)
}

/** An IPv4 address with the length of its prefix. Host bits may be set: `10.0.0.7/24` is an address in its network. */
export function isIpv4Cidr(text: string): boolean {
  const [, address = '', length = ''] = /^([0-9.]{7,15})\/([0-9]{1,2})$/.exec(text) ?? []
  return isIpv4(address) && /^(?:3[0-2]|[12]?[0-9])$/.test(length)
}

/** RFC 4291, section 2.2, the last 32 bits as IPv4 too. Without a zone: that means something on one host only. */
export function isIpv6(text: string): boolean {
  if (text.length > 45) return false
  const halves = text.split('::')
  if (halves.length > 2) return false
  const [head = '', tail] = halves
  const before = countGroups(head, tail === undefined)
  const after = tail === undefined ? 0 : countGroups(tail, true)
  if (before === undefined || after === undefined) return false
  // `::` stands for at least one group (RFC 5952 wants two; readers take one).
  return tail === undefined ? before === 8 : before + after <= 7
}

/** Groups of 16 bits; undefined where one is malformed. Only the end of an address may be written as IPv4. */
function countGroups(text: string, isEnd: boolean): number | undefined {
  if (text === '') return 0
  const groups = text.split(':')
  const last = groups.at(-1) ?? ''
  const hasIpv4 = isEnd && isIpv4(last)
  if (hasIpv4) groups.pop()
  return groups.every((each) => group.test(each)) ? groups.length + (hasIpv4 ? 2 : 0) : undefined
}
