import { describe, expect, it } from 'vitest'
import { logoText } from '../../../src/definition/slots/details.ts'
import { cpuNow } from '../../support/cpu-time.ts'

const url = (type: string, bytes: Uint8Array) =>
  `data:${type};base64,${Buffer.from(bytes).toString('base64')}`
const latin1 = (text: string) => Buffer.from(text, 'latin1')
const png = latin1('\x89PNG\r\n\x1a\n\0\0\0\rIHDR')

describe('a logo', () => {
  it.each([
    ['image/png', png],
    ['image/jpeg', latin1('\xff\xd8\xff\xe0\0\x10JFIF')],
    ['image/gif', latin1('GIF87a\x01\0')],
    ['image/gif', latin1('GIF89a\x01\0')],
    ['image/webp', latin1('RIFF\n\0\0\0WEBPVP8 ')],
  ])('a logo is %s by its first bytes', (type, bytes) => {
    expect(logoText(bytes)).toBe(url(type, bytes))
  })

  it('a logo is read from a part of a larger buffer', () => {
    const inside = new Uint8Array(Buffer.concat([latin1('junk'), png, latin1('junk')])).subarray(
      4,
      4 + png.length,
    )
    expect(logoText(inside)).toBe(url('image/png', png))
  })

  it.each([
    ['nothing', ''],
    ['text', 'hello'],
    ['a web page', '<!DOCTYPE html><html><body><svg></svg></body></html>'],
    ['half a PNG', '\x89PNG'],
    ['another RIFF file', 'RIFF\n\0\0\0WAVEfmt '],
    ['a bitmap', 'BM\x46\0\0\0'],
    ['a PNG after something else', 'x\x89PNG\r\n\x1a\n'],
  ])('the data URL of a logo is empty for %s', (_case, text) => {
    expect(logoText(latin1(text))).toBe('')
  })

  it('a logo is at most 262,144 bytes long', () => {
    const full = Buffer.concat([png, Buffer.alloc(262_144 - png.length)])
    expect(logoText(full)).toBe(url('image/png', full))
    expect(logoText(Buffer.concat([full, Buffer.alloc(1)]))).toBe('')
  })
})

describe('an SVG', () => {
  const shape = '<path d="M0 0h8v8z"/>'
  const svg = (inside: string) => `<svg xmlns="http://www.w3.org/2000/svg">${inside}</svg>`

  it.each([
    ['alone', svg(shape)],
    ['without content', '<svg/>'],
    ['after a declaration', `<?xml version="1.0" encoding="UTF-8"?>\n${svg(shape)}`],
    ['after a byte order mark', `\ufeff${svg(shape)}`],
    [
      'after comments and a document type',
      `<?xml version="1.0"?>\n<!-- made by -->\n<!-- a - b -->\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd">\n${svg(shape)}`,
    ],
    [
      'with words that only look like active content',
      svg('<title>Description: option one, metadata: 5</title>'),
    ],
    ['with an image in it', svg('<image href="data:image/png;base64,iVBORw0KGgo="/>')],
    ['with a character reference', svg('<title>&#169; &#x41; &#99999999999;</title>')],
  ])('an SVG is shown %s', (_case, text) => {
    expect(logoText(Buffer.from(text))).toBe(url('image/svg+xml', Buffer.from(text)))
  })

  it.each([
    ['a script', '<script>alert(1)</script>'],
    ['a script of another case', '<SCRIPT/>'],
    ['a script behind a prefix', '<s:script xmlns:s="http://www.w3.org/2000/svg">alert(1)</s:script>'],
    ['a handler', '<g onload="alert(1)"/>'],
    ['a handler after a line break', "<g\nOnClick = 'alert(1)'/>"],
    ['a handler right after a value', '<g id="x"onclick="alert(1)"/>'],
    ['a javascript: address', '<a href="javascript:alert(1)">x</a>'],
    ['a javascript: address in character references', '<a href="&#106;ava&#x73;cript&#58;alert(1)">x</a>'],
    ['a javascript: address with tabs in it', '<a href="java&#9;script:alert(1)">x</a>'],
    ['another document in an address', '<use href="data:image/svg+xml;base64,PHN2Zy8+#x"/>'],
    ['elements of HTML', '<h:iframe xmlns:h="http://www.w3.org/1999/xhtml" src="x"/>'],
    ['a style sheet that transforms it', '<?xml-stylesheet type="text/xsl" href="x"?>'],
  ])('an SVG is not shown with %s', (_case, inside) => {
    expect(logoText(Buffer.from(svg(inside)))).toBe('')
  })

  it.each([
    ['entities of its own', `<!DOCTYPE svg [<!ENTITY x "y">]>${svg('&x;')}`],
    ['a style sheet before it', `<?xml version="1.0"?><?xml-stylesheet href="x"?>${svg(shape)}`],
    ['another encoding', `<?xml version="1.0" encoding='iso-2022-jp'?>${svg(shape)}`],
    ['another root', `<html>${svg(shape)}</html>`],
    ['text before it', `x ${svg(shape)}`],
    ['a root element whose name only begins with svg', '<svgx/>'],
  ])('an SVG is not shown with %s', (_case, text) => {
    expect(logoText(Buffer.from(text))).toBe('')
  })

  it('an SVG that is not UTF-8 is not shown', () => {
    expect(logoText(Buffer.concat([Buffer.from('<svg>'), Buffer.from([0xff]), Buffer.from('</svg>')]))).toBe(
      '',
    )
    expect(logoText(Buffer.from(svg(shape), 'utf16le'))).toBe('')
  })

  it.each([
    ['comments', '<!---->'.repeat(37_000)],
    ['unclosed comments', '<!--'.repeat(65_000)],
    ['spaces', ' '.repeat(262_000)],
    ['unfinished handlers', `<svg${' ona'.repeat(65_000)}`],
    ['unfinished character references', `<svg>${'&#'.repeat(130_000)}`],
  ])('a logo of nothing but %s is checked in linear time', (_case, text) => {
    const before = cpuNow()
    logoText(Buffer.from(text))
    expect(cpuNow() - before).toBeLessThan(1_000)
  })
})
