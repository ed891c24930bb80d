import { AnswerTooLarge } from './failures.ts'

// The kubelet gives each image three names, and a host has some hundred images.
const mostTexts = 100_000
const mostCharacters = 16_777_216

/**
 * Counts what the list of one runtime keeps in memory: images of a few bytes each would otherwise fill that of the daemon, however
 * few bytes the list has.
 * @returns a function to call for each image, with its id, names and digests; it throws AnswerTooLarge
 */
export function createListBounds(): (texts: readonly string[]) => void {
  let count = 0
  let characters = 0
  return (texts) => {
    count += texts.length
    for (const { length } of texts) characters += length
    if (count > mostTexts) throw new AnswerTooLarge(`${mostTexts} names and digests`)
    if (characters > mostCharacters)
      throw new AnswerTooLarge(`${mostCharacters} characters of names and digests`)
  }
}
